//! A timeline with arbitrary content: named tracks, nested slices, values over time, and arrows from one slice to another.

use std::io::{self, Write};

use super::packets::{Packets, Track};
use super::schema::{COUNTER, DebugAnnotation, SLICE_BEGIN, TrackEvent};
use crate::Nanos;
use crate::display_text::one_line;

/// Writes a timeline and keeps only one packet in memory. Makes many small writes, so `out` should be buffered.
pub struct Timeline<'w> {
    packets: Packets<'w>,
    root: Track,
    /// Number of tracks, which is the position of the next one.
    tracks: usize,
}

/// The content of a slice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Label<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its category, for filtering.
    pub category: &'static str,
    /// Figures with their names.
    pub notes: &'a [(&'a str, u64)],
    /// The arrows that start here. The other end of each is the slice with the same number in `arrow_to`.
    pub arrows_from: &'a [u64],
    /// The arrow that ends here.
    pub arrow_to: Option<u64>,
}

impl<'w> Timeline<'w> {
    /// Starts a timeline at time 0; `description` is what a reader must know about it.
    ///
    /// # Errors
    /// Those of `out`, here and below.
    pub fn start(out: &'w mut dyn Write, name: &str, description: &str) -> io::Result<Self> {
        let mut packets = Packets::start(out, 0, None)?;
        let root = packets.track(None, 0, &one_line(name), Some(one_line(description)))?;
        Ok(Self { packets, root, tracks: 0 })
    }

    /// Adds a track below `parent`, or below all tracks that were added at the top level before.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn track(&mut self, parent: Option<Track>, name: &str) -> io::Result<Track> {
        self.tracks += 1;
        self.packets.track(Some(parent.unwrap_or(self.root)), self.tracks, &one_line(name), None)
    }

    /// Adds a track of values in ns below `parent`, or below all tracks that were added at the top level before.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn counter(&mut self, parent: Option<Track>, name: &str) -> io::Result<Track> {
        self.tracks += 1;
        self.packets.counter(Some(parent.unwrap_or(self.root)), self.tracks, &one_line(name))
    }

    /// Sets the value of a track from this time on, in ns.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn value(&mut self, track: Track, at: Nanos, ns: i64) -> io::Result<()> {
        let event = TrackEvent {
            r#type: Some(COUNTER),
            track_uuid: Some(track.0),
            counter_value: Some(ns),
            ..TrackEvent::default()
        };
        self.packets.event(at, event)
    }

    /// Opens a slice within those that are open on the track. On each track, slices must be in order of time.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn begin(&mut self, track: Track, at: Nanos, label: &Label<'_>) -> io::Result<()> {
        let notes = label.notes.iter().map(|(name, value)| DebugAnnotation::number(&one_line(name), *value));
        let event = TrackEvent {
            debug_annotations: notes.collect(),
            r#type: Some(SLICE_BEGIN),
            track_uuid: Some(track.0),
            categories: vec![label.category.to_owned()],
            name: Some(one_line(label.name)),
            flow_ids: label.arrows_from.to_vec(),
            terminating_flow_ids: label.arrow_to.into_iter().collect(),
            ..TrackEvent::default()
        };
        self.packets.event(at, event)
    }

    /// Closes the innermost open slice of a track.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn end(&mut self, track: Track, at: Nanos) -> io::Result<()> {
        self.packets.end(track, at)
    }
}

impl std::fmt::Debug for Timeline<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timeline").field("tracks", &self.tracks).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::formats::perfetto::schema::{SLICE_END, Trace};

    fn ns(n: u64) -> Nanos {
        Nanos::from_nanos(n)
    }

    fn written() -> Vec<u8> {
        let mut out = Vec::new();
        let mut timeline = Timeline::start(&mut out, "a\nrun", "all of it").unwrap();
        let outer = timeline.track(None, "rank 0").unwrap();
        let inner = timeline.track(Some(outer), "CPU 1").unwrap();
        let send = Label { name: "send", category: "send", arrows_from: &[7], ..Label::default() };
        timeline.begin(outer, ns(3), &Label { notes: &[("bytes", 8)], ..send }).unwrap();
        timeline
            .begin(outer, ns(4), &Label { name: "noise", category: "noise", ..Label::default() })
            .unwrap();
        timeline.end(outer, ns(5)).unwrap();
        timeline.end(outer, ns(5)).unwrap();
        timeline.begin(inner, ns(9), &Label { arrow_to: Some(7), ..Label::default() }).unwrap();
        timeline.end(inner, ns(9)).unwrap();
        out
    }

    #[test]
    fn tracks_hang_below_one_root() {
        let packets = Trace::decode(written().as_slice()).unwrap().packet;
        let tracks = packets.into_iter().filter_map(|packet| packet.track_descriptor);
        let tracks: Vec<_> = tracks.map(|t| (t.uuid.unwrap(), t.parent_uuid, t.name.unwrap())).collect();
        let expected = [(1, None, "a\u{fffd}run"), (2, Some(1), "rank 0"), (3, Some(2), "CPU 1")];
        assert_eq!(tracks, expected.map(|(uuid, parent, name)| (uuid, parent, name.to_owned())));
    }

    #[test]
    fn slices_keep_their_times_figures_and_arrows() {
        let packets = Trace::decode(written().as_slice()).unwrap().packet;
        let events: Vec<_> =
            packets.iter().filter_map(|p| Some((p.timestamp?, p.track_event.as_ref()?))).collect();
        let shape: Vec<_> = events.iter().map(|(at, e)| (*at, e.track_uuid, e.r#type)).collect();
        let [begin, end] = [Some(SLICE_BEGIN), Some(SLICE_END)];
        let [two, three] = [Some(2), Some(3)];
        assert_eq!(
            shape,
            [
                (3, two, begin),
                (4, two, begin),
                (5, two, end),
                (5, two, end),
                (9, three, begin),
                (9, three, end)
            ]
        );
        let (send, receive) = (events[0].1, events[4].1);
        assert_eq!((send.flow_ids.as_slice(), send.terminating_flow_ids.as_slice()), (&[7][..], &[][..]));
        assert_eq!(
            (receive.flow_ids.as_slice(), receive.terminating_flow_ids.as_slice()),
            (&[][..], &[7][..])
        );
        assert_eq!(send.debug_annotations, [DebugAnnotation::number("bytes", 8)]);
    }

    #[test]
    fn values_stand_on_tracks_of_their_own() {
        let mut out = Vec::new();
        let mut timeline = Timeline::start(&mut out, "a run", "all of it").unwrap();
        let counter = timeline.counter(None, "noise").unwrap();
        timeline.value(counter, ns(5), -2).unwrap();
        let packets = Trace::decode(out.as_slice()).unwrap().packet;
        let unit = packets.iter().filter_map(|p| p.track_descriptor.as_ref()?.counter.as_ref()?.unit);
        assert_eq!(unit.collect::<Vec<_>>(), [super::super::schema::IN_NS]);
        let event = packets.iter().find_map(|p| Some((p.timestamp?, p.track_event.as_ref()?))).unwrap();
        assert_eq!((event.0, event.1.r#type, event.1.counter_value), (5, Some(COUNTER), Some(-2)));
    }

    #[test]
    fn arrows_are_not_packed() {
        // Perfetto's format is proto2: eight bytes follow key 47, not a length.
        let bytes = written();
        let key = [47u32 << 3 | 1].map(|key| [(key & 0x7f | 0x80) as u8, (key >> 7) as u8])[0];
        let arrow = [&key[..], &7u64.to_le_bytes()].concat();
        assert!(bytes.windows(arrow.len()).any(|window| window == arrow));
    }
}
