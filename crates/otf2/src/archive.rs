//! An archive that is read.

use std::collections::VecDeque;
use std::ffi::{CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{ptr, slice};

use quell_recording::mpi::{Damage, Definitions, Event, Run};

use crate::definitions::{Collected, Tables, take};
use crate::error::{Error, complaint};
use crate::translate::Track;
use crate::{METRICS_FIRST, ffi, limits};

/// Events that are read at once: their structs fit into a core's own cache.
const AT_ONCE: u64 = 4096;
/// The largest buffer that OTF2's format allows, in bytes.
const LARGEST_CHUNK: u64 = 16 << 20;

/// An OTF2 archive. Its locations can be read in turn, each at its own pace; streams beyond what files and memory allow are closed, and
/// opened again where they were.
#[derive(Debug)]
pub struct Archive {
    reader: *mut ffi::Reader,
    anchor: PathBuf,
    tables: Tables,
    places: Vec<Place>,
    /// Locations whose streams are open, the one that was read last at the end.
    open: VecDeque<usize>,
    most_open: usize,
}

// SAFETY: the library keeps nothing of an archive by thread, and whoever has the archive has it alone.
unsafe impl Send for Archive {}

/// Where the reading of a location stands.
#[derive(Debug)]
struct Place {
    track: Track,
    stream: *mut ffi::Stream,
    /// Events of all kinds that were read.
    read: u64,
    end: Option<Result<(), Damage>>,
}

impl Archive {
    /// Opens the archive in a folder, or that of an anchor file (`traces.otf2`). Reads its definitions; events are read by [`Run::read`].
    ///
    /// # Errors
    /// If there is no archive, or its anchor or its definitions cannot be read. Damage to a location's events is told when they are read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let anchor = anchor(path)?;
        let name = CString::new(anchor.as_os_str().as_bytes())
            .map_err(|_| Error::not_an_archive(path, "its name has a zero in it"))?;
        // SAFETY: `name` is a C string that outlives the call.
        let reader = unsafe { ffi::quell_otf2_open(name.as_ptr()) };
        if reader.is_null() {
            return Err(Error::not_an_archive(&anchor, complaint()));
        }
        let reader = Closing(reader);
        let malformed = |reason: String| Error::malformed(&anchor, reason);
        // SAFETY: the reader is open, here and below; the name is a C string.
        let chunk = unsafe { ffi::quell_otf2_chunk(reader.0) };
        if chunk > LARGEST_CHUNK {
            return Err(malformed(format!("it asks for buffers of {chunk} bytes")));
        }
        // SAFETY: as above.
        let metrics_first = unsafe { ffi::quell_otf2_has_property(reader.0, METRICS_FIRST.as_ptr()) } != 0;
        let mut collected = Collected::default();
        // SAFETY: `take` expects a `Collected`, and gets this one, which outlives the call.
        let code =
            unsafe { ffi::quell_otf2_definitions(reader.0, take, (&raw mut collected).cast::<c_void>()) };
        if code != 0 {
            return Err(malformed(format!("its definitions cannot be read: {}", complaint())));
        }
        let tables = Tables::new(&collected, metrics_first).map_err(malformed)?;
        let [comm, source, tag] = tables.attributes;
        // SAFETY: the reader is open.
        unsafe { ffi::quell_otf2_attributes(reader.0, comm, source, tag) };
        let places = places(&reader, &tables).map_err(malformed)?;
        let reader = reader.keep();
        Ok(Self {
            reader,
            anchor,
            tables,
            places,
            open: VecDeque::new(),
            most_open: limits::most_open(chunk),
        })
    }

    /// How many locations belong to no rank, and are left out: streams of GPUs, metrics of hosts, threads of other processes.
    pub fn left_out(&self) -> usize {
        self.tables.left_out
    }

    /// The anchor file.
    pub fn anchor(&self) -> &Path {
        &self.anchor
    }

    /// Opens the location's stream if it is not; closes the one that was not used for longest if they are too many.
    fn stream(&mut self, location: usize) -> Result<*mut ffi::Stream, Damage> {
        if let Some(at) = self.open.iter().rposition(|&open| open == location) {
            self.open.remove(at);
        } else {
            while self.open.len() >= self.most_open
                && let Some(other) = self.open.pop_front()
            {
                self.close(other);
            }
            let Place { track, read, .. } = &self.places[location];
            // SAFETY: the reader is open, and selected this location when it was opened.
            let stream = unsafe { ffi::quell_otf2_stream(self.reader, track.id, *read) };
            if stream.is_null() {
                return Err(Damage(format!(
                    "{} cannot be read: {}",
                    self.file(location).display(),
                    complaint()
                )));
            }
            self.places[location].stream = stream;
        }
        self.open.push_back(location);
        Ok(self.places[location].stream)
    }

    fn close(&mut self, location: usize) {
        let stream = std::mem::replace(&mut self.places[location].stream, ptr::null_mut());
        if !stream.is_null() {
            // SAFETY: the stream is open, and this was its only pointer.
            unsafe { ffi::quell_otf2_stream_close(self.reader, stream) };
        }
    }

    /// The file that holds a location's events.
    fn file(&self, location: usize) -> PathBuf {
        self.anchor.with_extension("").join(format!("{}.evt", self.places[location].track.id))
    }

    /// Reads some events; `false` at the end.
    fn some(&mut self, location: usize, events: &mut Vec<Event>) -> Result<bool, Damage> {
        if self.tables.told[location] == 0 && !self.file(location).exists() {
            return Ok(false);
        }
        let stream = self.stream(location)?;
        let (mut raw, mut count, mut read) = (ptr::null(), 0, 0);
        // SAFETY: reader and stream are open, the rest is written by the call.
        let code = unsafe {
            ffi::quell_otf2_read(self.reader, stream, AT_ONCE, &raw mut raw, &raw mut count, &raw mut read)
        };
        let raw = if count == 0 {
            &[]
        } else {
            // SAFETY: the reader's buffer holds so many events until it is asked for the next ones.
            unsafe { slice::from_raw_parts(raw, count as usize) }
        };
        let place = &mut self.places[location];
        place.read += read;
        place.track.translate(&self.tables, raw, events)?;
        if code == 0 && read == AT_ONCE {
            return Ok(true);
        }
        place.track.end(&self.tables, events)?;
        let (read, told) = (place.read, self.tables.told[location]);
        if code != 0 {
            let reason = complaint();
            return Err(Damage(format!(
                "{} is damaged behind its first {read} events: {reason}",
                self.file(location).display()
            )));
        }
        if read < told {
            let file = self.file(location);
            return Err(Damage(format!("{} ends after {read} of {told} events", file.display())));
        }
        Ok(false)
    }
}

impl Run for Archive {
    fn definitions(&self) -> &Definitions {
        &self.tables.definitions
    }

    fn read(&mut self, location: usize, events: &mut Vec<Event>) -> Result<bool, Damage> {
        let before = events.len();
        loop {
            match self.places.get(location).map(|place| &place.end) {
                None | Some(Some(Ok(()))) => return Ok(events.len() > before),
                Some(Some(Err(damage))) => return Err(damage.clone()),
                Some(None) => {}
            }
            let end = match self.some(location, events) {
                Ok(true) if events.len() > before => return Ok(true),
                Ok(true) => continue,
                Ok(false) => Ok(()),
                Err(damage) => Err(damage),
            };
            self.places[location].end = Some(end);
            self.open.retain(|&open| open != location);
            self.close(location);
        }
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        while let Some(location) = self.open.pop_front() {
            self.close(location);
        }
        // SAFETY: the reader is open, and its streams are closed.
        unsafe { ffi::quell_otf2_close(self.reader) };
    }
}

/// A reader that is closed if opening fails later.
struct Closing(*mut ffi::Reader);

impl Closing {
    fn keep(self) -> *mut ffi::Reader {
        let reader = self.0;
        std::mem::forget(self);
        reader
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        // SAFETY: the reader is open, and nobody else has it.
        unsafe { ffi::quell_otf2_close(self.0) };
    }
}

/// Makes the locations readable.
fn places(reader: &Closing, tables: &Tables) -> Result<Vec<Place>, String> {
    let locations = &tables.definitions.locations;
    let ids: Vec<u64> = locations.iter().map(|location| location.id).collect();
    let mut failed: Vec<c_int> = vec![0; ids.len()];
    // SAFETY: the reader is open; the lists are as long as is said, and written within the call.
    let code =
        unsafe { ffi::quell_otf2_select(reader.0, ids.as_ptr(), ids.len() as u64, failed.as_mut_ptr()) };
    if code != 0 && !ids.is_empty() {
        return Err(format!("its events cannot be opened: {}", complaint()));
    }
    let sources = tables.definitions.sources.len();
    let place = |(location, failed): (&quell_recording::mpi::Location, &c_int)| Place {
        track: Track::new(location.rank, location.id, sources),
        stream: ptr::null_mut(),
        read: 0,
        end: (*failed != 0).then(|| {
            let id = location.id;
            Err(Damage(format!(
                "the definitions of location {id} cannot be read ({id}.def): its events cannot be understood"
            )))
        }),
    };
    Ok(locations.iter().zip(&failed).map(place).collect())
}

/// The anchor file that is meant by a path.
fn anchor(path: &Path) -> Result<PathBuf, Error> {
    let is_anchor = |path: &Path| path.extension().is_some_and(|extension| extension == "otf2");
    if !path.is_dir() {
        let reason = match path.exists() {
            true if is_anchor(path) => return Ok(path.to_owned()),
            true => "its name does not end with .otf2",
            false => "there is nothing of that name",
        };
        return Err(Error::not_an_archive(path, reason));
    }
    let usual = path.join("traces.otf2");
    if usual.is_file() {
        return Ok(usual);
    }
    let mut anchors = Vec::new();
    for entry in fs_err::read_dir(path)? {
        let path = entry?.path();
        if is_anchor(&path) && path.is_file() {
            anchors.push(path);
        }
    }
    match <[PathBuf; 1]>::try_from(anchors) {
        Ok([anchor]) => Ok(anchor),
        Err(none) if none.is_empty() => {
            Err(Error::not_an_archive(path, "the folder holds no file NAME.otf2"))
        }
        Err(several) => {
            Err(Error::not_an_archive(path, format!("the folder holds {} files NAME.otf2", several.len())))
        }
    }
}
