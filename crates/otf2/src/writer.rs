//! Writing an archive, event by event.

use std::ffi::{CString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use quell_recording::mpi::{BLOCKING, Definitions, Event, Operation, UNKNOWN, What};

use crate::define::{CommAs, Defining, Facts, MOST_SOURCES, comms, team};
use crate::error::{Error, complaint};
use crate::ffi::{RawDefinition, RawEvent, event};
use crate::{METRICS_FIRST, ffi, limits};

/// Writes an archive with the name `traces`. Events go to disk continuously; each location has a buffer of 256 KiB until [`Writer::close`].
#[derive(Debug)]
pub struct Writer {
    raw: *mut ffi::RawWriter,
    folder: PathBuf,
    definitions: Definitions,
    comms: Vec<CommAs>,
    references: Vec<u32>,
    facts: Facts,
    streams: Vec<Stream>,
    /// Whether a thread was in a team.
    teams: bool,
}

// SAFETY: the library keeps no per-thread state of an archive, and the owner of the writer has exclusive access.
unsafe impl Send for Writer {}

/// A location's events.
#[derive(Debug)]
struct Stream {
    raw: *mut ffi::Stream,
    /// Number of events written, metrics included.
    events: u64,
    /// Time of the last event, in ticks.
    last: u64,
    /// Noise of each source so far, in ns.
    totals: Vec<u64>,
    /// The time of the noise that is not written yet, and its sources.
    declared: Option<u64>,
    news: Vec<u32>,
    probed: Option<Probed>,
}

#[derive(Clone, Copy, Debug)]
struct Probed {
    comm: u32,
    from: u32,
    tag: u32,
}

impl Writer {
    /// Begins an archive in a folder, which is created if necessary.
    ///
    /// # Errors
    /// If an archive exists already, the definitions cannot be expressed in OTF2, or the folder cannot be written.
    pub fn create(folder: &Path, definitions: &Definitions) -> Result<Self, Error> {
        Self::with_facts(folder, definitions, Facts::default())
    }

    /// Begins an archive with additional facts. Locations must be in order of rank and thread.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub fn with_facts(folder: &Path, definitions: &Definitions, facts: Facts) -> Result<Self, Error> {
        let unwritten = |reason: String| Error::unwritten(folder, reason);
        check(definitions).map_err(unwritten)?;
        if folder.join("traces.otf2").exists() {
            return Err(unwritten(
                "it holds an archive already: choose another folder, or remove it first".into(),
            ));
        }
        fs_err::create_dir_all(folder)?;
        limits::files();
        let path = CString::new(folder.as_os_str().as_bytes())
            .map_err(|_| unwritten("its name has a zero in it".into()))?;
        // SAFETY: both are C strings that outlive the call.
        let raw = unsafe { ffi::quell_otf2_create(path.as_ptr(), c"traces".as_ptr()) };
        if raw.is_null() {
            return Err(unwritten(complaint()));
        }
        let (comms, references) = comms(definitions);
        let stream = || Stream {
            raw: ptr::null_mut(),
            events: 0,
            last: 0,
            totals: vec![0; definitions.sources.len()],
            declared: None,
            news: Vec::new(),
            probed: None,
        };
        let streams = definitions.locations.iter().map(|_| stream()).collect();
        let definitions = definitions.clone();
        let mut writer = Self {
            raw,
            folder: folder.to_owned(),
            definitions,
            comms,
            references,
            facts,
            streams,
            teams: false,
        };
        writer.describe()?;
        Ok(writer)
    }

    fn describe(&mut self) -> Result<(), Error> {
        let text =
            |text: Option<&str>| text.map(|text| CString::new(text.replace('\0', " ")).unwrap_or_default());
        let pointer = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        let creator =
            text(Some(self.facts.creator.as_deref().unwrap_or(concat!("quell ", env!("CARGO_PKG_VERSION")))));
        let (machine, description) =
            (text(self.facts.machine.as_deref()), text(self.facts.description.as_deref()));
        // SAFETY: the writer is open; the texts are C strings that outlive the call, or null.
        self.done(unsafe {
            ffi::quell_otf2_describe(self.raw, pointer(&creator), pointer(&machine), pointer(&description))
        })?;
        // SAFETY: the writer is open; both are C strings.
        self.done(unsafe { ffi::quell_otf2_property(self.raw, METRICS_FIRST.as_ptr(), c"1".as_ptr()) })?;
        for (name, value) in &self.facts.properties {
            let (name, value) = (text(Some(name)), text(Some(value)));
            // SAFETY: as above.
            self.done(unsafe { ffi::quell_otf2_property(self.raw, pointer(&name), pointer(&value)) })?;
        }
        Ok(())
    }

    /// Writes an event of the location at this index. Noise is written together with that of all sources, before the next event. A probed
    /// message is written with the next [`What::Leave`], whose time it gets, and which must come before all other events except noise.
    ///
    /// # Errors
    /// If it refers to something undefined, its time is too large or before that of the location's last event (OTF2 requires
    /// ascending times), or it cannot be written.
    pub fn event(&mut self, location: usize, event: Event) -> Result<(), Error> {
        let time = event.time_ns.checked_add(self.facts.zero_clock_ns);
        let time = time.ok_or_else(|| self.refused(location, event, "is later than the clock can say"))?;
        let places = (self.definitions.regions.len(), self.definitions.sources.len());
        let Some(stream) = self.streams.get_mut(location) else {
            return Err(self.refused(location, event, "is of a location that is not defined"));
        };
        if time < stream.last {
            return Err(self.refused(
                location,
                event,
                "is earlier than the last one, which OTF2 does not allow",
            ));
        }
        stream.last = time;
        match event.what {
            What::Noise { source, total_ns } if (source as usize) < places.1 => {
                if stream.declared.is_some_and(|declared| declared != time) || stream.news.contains(&source) {
                    self.report(location)?;
                }
                let stream = &mut self.streams[location];
                stream.declared = Some(time);
                stream.news.push(source);
                stream.totals[source as usize] = total_ns;
                return Ok(());
            }
            What::Probed { comm, from, tag } if stream.probed.is_none() => {
                stream.probed = Some(Probed { comm, from, tag });
                return Ok(());
            }
            What::Enter(region) | What::Leave(region) if region as usize >= places.0 => {
                return Err(self.refused(location, event, "names a region that is not defined"));
            }
            What::TeamBegin | What::TeamEnd => self.teams = true,
            What::Noise { .. } => {
                return Err(self.refused(location, event, "names a source that is not defined"));
            }
            _ => {}
        }
        let probed = stream.probed.take();
        if probed.is_some() && !matches!(event.what, What::Leave(_)) {
            return Err(self.refused(
                location,
                event,
                "comes between a probed message and the end of its call",
            ));
        }
        if stream.declared.is_none() && stream.events == 0 {
            stream.declared = Some(time);
        }
        self.report(location)?;
        let raw = self
            .raw_event(location, time, event.what, probed)
            .map_err(|reason| self.refused(location, event, reason))?;
        let to = self.stream(location)?;
        // SAFETY: writer and stream are open; the event outlives the call.
        let code = unsafe { ffi::quell_otf2_write(self.raw, to, &raw const raw) };
        if code != 0 {
            return Err(self.refused(location, event, &complaint()));
        }
        self.streams[location].events += 1;
        Ok(())
    }

    /// Writes the rest of a location's events, and frees its buffer; no event may follow. A probed message without the end of its call,
    /// as in a program that was killed, is left out.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn close(&mut self, location: usize) -> Result<(), Error> {
        self.streams[location].probed = None;
        self.report(location)?;
        self.stream(location)?; // creates it, so that each location has a file
        let raw = std::mem::replace(&mut self.streams[location].raw, ptr::null_mut());
        // SAFETY: the stream is open, and no other pointer to it remains.
        self.done(unsafe { ffi::quell_otf2_written(self.raw, raw) })
    }

    /// Finishes the archive. Definitions are written last, because they contain the numbers of events.
    ///
    /// # Errors
    /// If something cannot be written. What was written stays on disk.
    pub fn finish(mut self) -> Result<(), Error> {
        for location in 0..self.streams.len() {
            if self.streams[location].events == 0 || !self.streams[location].raw.is_null() {
                self.close(location)?;
            }
        }
        let events: Vec<u64> = self.streams.iter().map(|stream| stream.events).collect();
        // A program that was killed has no end, and its events may be later than any that the definitions have.
        let last = self.streams.iter().map(|stream| stream.last).max().unwrap_or_default();
        let span = &mut self.definitions.span_ns;
        span[1] = span[1].max(last.saturating_sub(self.facts.zero_clock_ns));
        let all = Defining::new(&self.definitions, &self.comms, &self.facts, &events, self.teams);
        // SAFETY: the writer is open, and its streams are closed.
        self.done(unsafe { ffi::quell_otf2_define_begin(self.raw) })?;
        // SAFETY: the writer is open; a definition's lists and strings outlive the call.
        let define = |raw: &RawDefinition| self.done(unsafe { ffi::quell_otf2_define(self.raw, raw) });
        all.strings(define)?;
        // SAFETY: the writer is open.
        self.done(unsafe { ffi::quell_otf2_define_paradigms(self.raw, all.mpi, all.openmp) })?;
        all.others(define)?;
        let ids: Vec<u64> = self.definitions.locations.iter().map(|location| location.id).collect();
        let raw = std::mem::replace(&mut self.raw, ptr::null_mut());
        // SAFETY: the writer is open, and no other pointer to it remains; the list has the length that is passed.
        self.done(unsafe { ffi::quell_otf2_finish(raw, ids.as_ptr(), ids.len() as u64) })?;
        Ok(())
    }

    /// Writes the noise that is not written yet.
    fn report(&mut self, location: usize) -> Result<(), Error> {
        let Some(time) = self.streams[location].declared.take() else { return Ok(()) };
        self.streams[location].news.clear();
        if self.definitions.sources.is_empty() {
            return Ok(());
        }
        let to = self.stream(location)?;
        let stream = &mut self.streams[location];
        stream.events += 1;
        let (values, count) = (stream.totals.as_ptr(), stream.totals.len() as u8); // not more than MOST_SOURCES
        // SAFETY: the stream is open; there are `count` values.
        self.done(unsafe { ffi::quell_otf2_write_metric(to, time, 0, values, count) })
    }

    fn stream(&mut self, location: usize) -> Result<*mut ffi::Stream, Error> {
        if self.streams[location].raw.is_null() {
            // SAFETY: the writer is open.
            let raw = unsafe { ffi::quell_otf2_write_to(self.raw, self.definitions.locations[location].id) };
            if raw.is_null() {
                return Err(Error::unwritten(&self.folder, complaint()));
            }
            self.streams[location].raw = raw;
        }
        Ok(self.streams[location].raw)
    }

    fn raw_event(
        &self,
        location: usize,
        time: u64,
        what: What,
        probed: Option<Probed>,
    ) -> Result<RawEvent, &'static str> {
        let comm = |place: u32| match place {
            UNKNOWN => Ok(UNKNOWN),
            place => {
                let own =
                    *self.references.get(place as usize).ok_or("names a communicator that is not defined")?;
                let (rank, comm) =
                    (self.definitions.locations[location].rank, &self.definitions.comms[place as usize]);
                let foreign = self.comms[own as usize].of_each && comm.members != [rank];
                if foreign { Err("names another rank's own communicator") } else { Ok(own) }
            }
        };
        let team = team(&self.comms, self.definitions.locations[location].rank);
        let raw = |kind| RawEvent { time, kind, ..RawEvent::default() };
        let kind = |request, blocking, other| if request == BLOCKING { blocking } else { other };
        Ok(match what {
            What::Enter(of) => RawEvent { of, ..raw(event::ENTER) },
            What::Leave(of) => match probed {
                Some(Probed { comm: place, from, tag }) => {
                    RawEvent { of, request: comm(place)?.into(), peer: from, tag, ..raw(event::PROBED) }
                }
                None => RawEvent { of, ..raw(event::LEAVE) },
            },
            What::Send { comm: place, to, tag, bytes, request } => {
                let raw = raw(kind(request, event::SEND, event::ISEND));
                RawEvent { of: comm(place)?, peer: to, tag, sent: bytes, request, ..raw }
            }
            What::SendDone { request } => RawEvent { request, ..raw(event::ISEND_COMPLETE) },
            What::RecvPosted { comm: place, from, tag, request } => {
                RawEvent { of: comm(place)?, peer: from, tag, request, ..raw(event::IRECV_REQUEST) }
            }
            What::Recv { comm: place, from, tag, bytes, request } => {
                let raw = raw(kind(request, event::RECV, event::IRECV));
                RawEvent { of: comm(place)?, peer: from, tag, received: bytes, request, ..raw }
            }
            What::Pending { request } => RawEvent { request, ..raw(event::REQUEST_TEST) },
            What::Cancelled { request } => RawEvent { request, ..raw(event::REQUEST_CANCELLED) },
            What::CollectiveBegin => raw(event::COLLECTIVE_BEGIN),
            What::CollectivePosted { comm: place, request } => {
                RawEvent { of: comm(place)?, request, ..raw(event::COLLECTIVE_REQUEST) }
            }
            What::Collective { operation, comm: place, root, sent, received, request } => {
                let raw = raw(kind(request, event::COLLECTIVE_END, event::COLLECTIVE_COMPLETE));
                RawEvent {
                    of: comm(place)?,
                    peer: root,
                    tag: number(operation),
                    sent,
                    received,
                    request,
                    ..raw
                }
            }
            What::Fork { threads } => RawEvent { of: threads, ..raw(event::FORK) },
            What::TeamBegin => RawEvent { of: team, ..raw(event::TEAM_BEGIN) },
            What::TeamEnd => RawEvent { of: team, ..raw(event::TEAM_END) },
            What::Join => raw(event::JOIN),
            What::Noise { .. } | What::Probed { .. } => return Err("is written with another"),
        })
    }

    fn done(&self, code: c_int) -> Result<(), Error> {
        if code == 0 { Ok(()) } else { Err(Error::unwritten(&self.folder, complaint())) }
    }

    fn refused(&self, location: usize, event: Event, reason: &str) -> Error {
        Error::unwritten(&self.folder, format!("at location {location}, {event:?} {reason}"))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.raw.is_null() {
            return;
        }
        for stream in self.streams.iter().filter(|stream| !stream.raw.is_null()) {
            // SAFETY: writer and stream are open, and their pointers are not used again.
            unsafe { ffi::quell_otf2_written(self.raw, stream.raw) };
        }
        // SAFETY: as above.
        unsafe { ffi::quell_otf2_finish(self.raw, ptr::null(), 0) };
    }
}

/// OTF2's number for an operation.
fn number(operation: Operation) -> u32 {
    let at = ffi::OPERATIONS.iter().position(|&other| other == operation);
    at.unwrap_or_default() as u32 // all are in the table
}

/// Checks for what OTF2 cannot express.
fn check(definitions: &Definitions) -> Result<(), String> {
    let sources = definitions.sources.len();
    if sources > MOST_SOURCES {
        return Err(format!(
            "{sources} noise sources do not fit into one metric event, which holds {MOST_SOURCES}"
        ));
    }
    let mut ids: Vec<u64> = definitions.locations.iter().map(|location| location.id).collect();
    ids.sort_unstable();
    if ids.windows(2).any(|pair| pair[0] == pair[1]) || ids.contains(&u64::MAX) {
        return Err("two locations have the same number, or one has none".into());
    }
    let ranks: Vec<u32> = definitions.locations.iter().map(|location| location.rank).collect();
    let in_order = ranks.first().is_none_or(|&first| first == 0)
        && ranks.windows(2).all(|pair| pair[1] == pair[0] || pair[1] == pair[0].saturating_add(1));
    if !in_order {
        return Err("its locations are not in order of rank, or a rank has none".into());
    }
    Ok(())
}
