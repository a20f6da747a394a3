//! Draws the kept slices as tracks, values and arrows.

use std::collections::HashMap;
use std::io::{self, Write};

use quell_recording::Nanos;
use quell_recording::formats::perfetto::{Label, Timeline, Track};
use quell_recording::mpi::{Definitions, UNKNOWN};

use super::collector::{Call, Collector, Slice};

/// The kept slices, and the names for their numbers.
pub struct Drawing<'a> {
    definitions: &'a Definitions,
    kept: &'a Collector,
    /// The number of ranks that are drawn, and of all ranks.
    ranks: (usize, usize),
    /// The start of the timeline on the archive's clock, in ns.
    zero: i64,
    arrows: Arrows,
    /// The labels of the figures, by source.
    words: Vec<[String; 2]>,
}

/// An arrow, numbered from 1, to each call that the noise of other ranks delayed, from the call that caused the delay.
#[derive(Default)]
struct Arrows {
    /// The arrows that start at a slice, by its index.
    from: HashMap<usize, Vec<u64>>,
    to: HashMap<usize, u64>,
}

impl Arrows {
    fn from_messages(kept: &Collector) -> Self {
        let mut arrows = Self::default();
        for (to, slice) in kept.slices.iter().enumerate() {
            let Some((location, at)) = waited_for(slice) else { continue };
            // An arrow must go forward in time.
            let Some(from) =
                kept.call_at(location, at).filter(|from| kept.slices[*from].entered < slice.left)
            else {
                continue;
            };
            let number = arrows.to.len() as u64 + 1;
            arrows.from.entry(from).or_default().push(number);
            arrows.to.insert(to, number);
        }
        arrows
    }
}

/// The cause of a call's delay by the noise of other ranks: the location, and when it did what the call waited for.
fn waited_for(slice: &Slice) -> Option<(u32, i64)> {
    slice.call.as_ref().filter(|call| call.amplified > 0)?.cause
}

impl<'a> Drawing<'a> {
    pub fn new(definitions: &'a Definitions, kept: &'a Collector, ranks: usize, all: usize) -> Self {
        let zero = kept.slices.iter().map(|slice| slice.entered).min().unwrap_or(0);
        let begin = i64::try_from(definitions.span_ns[0]).unwrap_or(zero);
        // An archive whose clock has another zero does not give the time of its start.
        let last = kept.slices.iter().map(|slice| slice.left).max().unwrap_or(zero);
        let believable = begin <= zero && zero - begin <= last - zero;
        let words = definitions.sources.iter();
        Self {
            definitions,
            kept,
            ranks: (ranks, all),
            zero: if believable { begin } else { zero },
            arrows: Arrows::from_messages(kept),
            words: words
                .map(|name| [format!("amplified {name} ns"), format!("absorbed {name} ns")])
                .collect(),
        }
    }

    /// A description of what is drawn.
    pub fn extent(&self) -> String {
        let (drawn, all) = self.ranks;
        let sample = if drawn < all {
            ", evenly spread, the last to end and the one that lost most among them"
        } else {
            ""
        };
        format!(
            "{drawn} of {all} ranks{sample}: {} slices, {} arrows",
            self.kept.slices.len(),
            self.arrows.to.len()
        )
    }

    /// A description of what is missing.
    pub fn cut(&self) -> Option<String> {
        let Collector { dropped, bare, ref slices, .. } = *self.kept;
        let last = slices.iter().map(|slice| slice.left).max().unwrap_or(self.zero);
        let mut missing = Vec::new();
        if dropped > 0 {
            let (most, end) = (slices.len(), self.time(last));
            missing.push(format!(
                "a timeline holds at most {most} slices: it ends at about {end}, and {dropped} others of its ranks are left out"
            ));
        }
        if bare > 0 {
            missing.push(format!("{bare} calls have no figures by source"));
        }
        (!missing.is_empty()).then(|| missing.join("; "))
    }

    pub fn write(&self, name: &str, out: &mut dyn Write) -> io::Result<()> {
        let cut = self.cut().map(|cut| format!(" Not all: {cut}.")).unwrap_or_default();
        let about = format!(
            "Effect of noise on an MPI run, by quell {}. {}. An arrow goes from the call of the rank that was waited for to the \
             end of the call that its noise made later.{cut}",
            env!("CARGO_PKG_VERSION"),
            self.extent(),
        );
        let mut to = Timeline::start(out, &format!("quell track: {name}"), &about)?;
        let mut place = 0;
        while let Some(first) = self.kept.slices.get(place) {
            let all = self.kept.at(first.location);
            place = all.end;
            let host = self.definitions.locations.get(first.location as usize).map(|of| of.host.as_str());
            let on = host.filter(|host| !host.is_empty()).map(|host| format!(" on {host}"));
            let name = self.who(first.location);
            let track = to.track(None, &(name.clone() + &on.unwrap_or_default()))?;
            let counter = to.counter(Some(track), &format!("accumulated noise of {name}"))?;
            self.location(&mut to, track, all.clone())?;
            self.values(&mut to, counter, all)?;
        }
        Ok(())
    }

    /// The slices of a location, nested; a slice that would extend beyond the enclosing one ends with it.
    fn location(
        &self,
        to: &mut Timeline<'_>,
        track: Track,
        places: std::ops::Range<usize>,
    ) -> io::Result<()> {
        let mut open: Vec<i64> = Vec::new();
        for place in places {
            let slice = &self.kept.slices[place];
            while let Some(end) = open.pop_if(|end| *end <= slice.entered) {
                to.end(track, self.time(end))?;
            }
            let end = open.last().map_or(slice.left, |outer| slice.left.min(*outer)).max(slice.entered);
            self.begin(to, track, place, slice)?;
            match &slice.call {
                // No slice is within a call.
                Some(call) => {
                    self.came(to, track, place, (slice, call), end)?;
                    to.end(track, self.time(end))?;
                }
                None => open.push(end),
            }
        }
        open.into_iter().rev().try_for_each(|end| to.end(track, self.time(end)))
    }

    fn begin(&self, to: &mut Timeline<'_>, track: Track, place: usize, slice: &Slice) -> io::Result<()> {
        let region = self.definitions.regions.get(slice.region as usize);
        let name = region.filter(|_| slice.region != UNKNOWN).map_or("communication", |region| &region.name);
        let Some(call) = &slice.call else {
            return to.begin(
                track,
                self.time(slice.entered),
                &Label { name, category: "region", ..Label::default() },
            );
        };
        let figure = |ns: i64| ns.max(0) as u64;
        let mut notes = vec![
            ("accumulated before ns", figure(call.before)),
            ("accumulated after ns", figure(call.after)),
            ("amplified ns", figure(call.amplified)),
            ("absorbed ns", figure(call.absorbed)),
        ];
        if let Some((location, at)) = call.cause {
            notes.push(("waited for rank", self.rank(location).into()));
            notes.push(("waited ns", figure(at - slice.entered)));
        }
        for share in &self.kept.shares[call.shares.start as usize..call.shares.end as usize] {
            let Some([amplified, absorbed]) = self.words.get(share.source as usize) else { continue };
            let figures = [(amplified, share.amplified), (absorbed, share.absorbed)];
            notes.extend(
                figures.into_iter().filter(|one| one.1 != 0).map(|one| (one.0.as_str(), figure(one.1))),
            );
        }
        let arrows_from = self.arrows.from.get(&place).map_or(&[][..], Vec::as_slice);
        let category = if call.amplified > 0 { "amplified" } else { "call" };
        let label = Label { name, category, notes: &notes, arrows_from, arrow_to: None };
        to.begin(track, self.time(slice.entered), &label)
    }

    /// The end of a call that the noise of other ranks delayed: it starts when the awaited event came, and the arrow ends there.
    fn came(
        &self,
        to: &mut Timeline<'_>,
        track: Track,
        place: usize,
        (slice, call): (&Slice, &Call),
        end: i64,
    ) -> io::Result<()> {
        let Some((location, at)) = waited_for(slice) else { return Ok(()) };
        // Two ends of an arrow at the same instant would have no order.
        let at = at.max(slice.entered).saturating_add(1).min(end);
        let name = format!("{} came", self.who(location));
        let notes = [("amplified ns", call.amplified.max(0) as u64)];
        let arrow_to = self.arrows.to.get(&place).copied();
        let label = Label { name: &name, category: "amplified", notes: &notes, arrow_to, ..Label::default() };
        to.begin(track, self.time(at), &label)?;
        to.end(track, self.time(end))
    }

    /// Accumulated noise over time; a value is written only when it changes.
    fn values(
        &self,
        to: &mut Timeline<'_>,
        counter: Track,
        places: std::ops::Range<usize>,
    ) -> io::Result<()> {
        let mut last = None;
        for slice in &self.kept.slices[places] {
            let Some(call) = &slice.call else { continue };
            for (at, value) in [(slice.entered, call.before), (slice.left, call.after)] {
                if last.replace(value) != Some(value) {
                    to.value(counter, self.time(at), value)?;
                }
            }
        }
        Ok(())
    }

    fn rank(&self, location: u32) -> u32 {
        self.definitions.locations.get(location as usize).map_or(location, |of| of.rank)
    }

    fn who(&self, location: u32) -> String {
        let thread = self.definitions.locations.get(location as usize).map_or(0, |of| of.thread);
        let rank = self.rank(location);
        if thread == 0 { format!("rank {rank}") } else { format!("rank {rank} thread {thread}") }
    }

    fn time(&self, at: i64) -> Nanos {
        Nanos::from_nanos(u64::try_from(at - self.zero).unwrap_or(0))
    }
}
