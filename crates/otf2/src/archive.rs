//! Reading an archive.

use std::collections::VecDeque;
use std::ffi::{CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{ptr, slice};

use quell_recording::mpi::{Damage, Definitions, Event, Run};

use crate::arrays::{self, Scope};
use crate::chunks::{Extent, extent};
use crate::collected::{Collected, take};
use crate::definitions::Tables;
use crate::error::{Error, complaint};
use crate::translate::Track;
use crate::{METRICS_FIRST, ffi, limits};

/// Number of events read at a time: their structs fit into the cache of one core.
const AT_ONCE: u64 = 4096;
/// The largest buffer that OTF2's format allows, in bytes.
const LARGEST_CHUNK: u64 = 16 << 20;

/// An OTF2 archive. Its locations can be read alternately, each at its own pace. Streams beyond the limits of files and memory are closed,
/// and opened again at their position.
#[derive(Debug)]
pub struct Archive {
    reader: *mut ffi::Reader,
    anchor: PathBuf,
    tables: Tables,
    places: Vec<Place>,
    /// Bytes of a chunk of events.
    chunk: u64,
    /// Locations whose streams are open, the most recently read one last.
    open: VecDeque<usize>,
    most_open: usize,
}

// SAFETY: the library keeps no per-thread state of an archive, and the owner of the archive has exclusive access.
unsafe impl Send for Archive {}

/// The read position of a location.
#[derive(Debug)]
struct Place {
    track: Track,
    stream: *mut ffi::Stream,
    /// Number of events of all kinds that were read.
    read: u64,
    /// How much of its file is valid, once that was checked.
    extent: Option<Extent>,
    end: Option<Result<(), Damage>>,
}

impl Archive {
    /// Opens the archive in a folder, or that of an anchor file (`traces.otf2`). Reads its definitions; events are read by [`Run::read`].
    ///
    /// # Errors
    /// If there is no archive, or its anchor or its definitions cannot be read. Damaged events of a location give an error only when they
    /// are read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let anchor = anchor(path)?;
        let name = CString::new(anchor.as_os_str().as_bytes())
            .map_err(|_| Error::not_an_archive(path, "its name has a zero in it"))?;
        crate::anchor::check(&anchor).map_err(|reason| Error::malformed(&anchor, reason))?;
        // SAFETY: `name` is a C string that outlives the call.
        let reader = unsafe { ffi::quell_otf2_open(name.as_ptr()) };
        if reader.is_null() {
            return Err(Error::not_an_archive(&anchor, complaint()));
        }
        let reader = Closing(reader);
        let malformed = |reason: String| Error::malformed(&anchor, reason);
        let (mut chunk, mut definitions_chunk) = (0, 0);
        // SAFETY: the reader is open, here and below; the call writes the sizes.
        unsafe { ffi::quell_otf2_chunks(reader.0, &raw mut chunk, &raw mut definitions_chunk) };
        if chunk.max(definitions_chunk) > LARGEST_CHUNK {
            return Err(malformed(format!("it asks for buffers of {} bytes", chunk.max(definitions_chunk))));
        }
        let extent = extent(&anchor.with_extension("def"), definitions_chunk);
        let fits = || arrays::check(&anchor.with_extension("def"), definitions_chunk, Scope::Global);
        if let Err(broken) = extent.broken.map_or_else(fits, Err) {
            return Err(malformed(format!("its definitions cannot be read: {broken}")));
        }
        // SAFETY: the name is a C string that outlives the call.
        let metrics_first = unsafe { ffi::quell_otf2_has_property(reader.0, METRICS_FIRST.as_ptr()) } != 0;
        let mut collected = Collected::default();
        // SAFETY: `take` expects a `Collected`, and gets this one, which outlives the call.
        let code = unsafe {
            ffi::quell_otf2_definitions(reader.0, extent.size, take, (&raw mut collected).cast::<c_void>())
        };
        if code != 0 {
            return Err(malformed(format!("its definitions cannot be read: {}", complaint())));
        }
        let tables = Tables::new(&collected, metrics_first).map_err(malformed)?;
        let [comm, source, tag] = tables.attributes;
        // SAFETY: the reader is open.
        unsafe { ffi::quell_otf2_attributes(reader.0, comm, source, tag) };
        let places =
            places(&reader, &tables, &anchor.with_extension(""), definitions_chunk).map_err(malformed)?;
        let reader = reader.keep();
        Ok(Self {
            reader,
            anchor,
            tables,
            places,
            chunk,
            open: VecDeque::new(),
            most_open: limits::most_open(chunk),
        })
    }

    /// Number of locations that belong to no rank and are left out: streams of GPUs, metrics of hosts, threads of other processes.
    pub fn skipped_locations(&self) -> usize {
        self.tables.skipped_locations
    }

    /// Sets the maximum number of event files that are open at the same time, at least one. The default is what the limit on open files and
    /// 768 MiB of buffers allow. Further files are opened again for each read, which costs a search for the position.
    pub fn hold_open(&mut self, files: usize) {
        self.most_open = files.max(1);
    }

    /// The anchor file.
    pub fn anchor(&self) -> &Path {
        &self.anchor
    }

    /// Opens the location's stream if it is not open; closes the least recently used one if too many are open.
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
            // SAFETY: the stream is open, and no other pointer to it remains.
            unsafe { ffi::quell_otf2_stream_close(self.reader, stream) };
        }
    }

    /// The file that holds a location's events.
    fn file(&self, location: usize) -> PathBuf {
        self.anchor.with_extension("").join(format!("{}.evt", self.places[location].track.id))
    }

    /// Reads some events; `false` at the end.
    fn some(&mut self, location: usize, events: &mut Vec<Event>) -> Result<bool, Damage> {
        if self.tables.declared[location] == 0 && !self.file(location).exists() {
            return Ok(false);
        }
        if self.places[location].extent.is_none() {
            self.places[location].extent = Some(extent(&self.file(location), self.chunk));
        }
        let Some(Extent { events: whole, broken, .. }) = self.places[location].extent.clone() else {
            return Ok(false);
        };
        let most = AT_ONCE.min(whole - self.places[location].read);
        if most == 0 {
            self.places[location].track.end(&self.tables, events)?;
            let declared = self.tables.declared[location];
            return match broken {
                Some(broken) => Err(Damage(format!("{broken}: events behind the first {whole} are lost"))),
                None if whole < declared => Err(Damage(format!(
                    "{} ends after {whole} of {declared} events",
                    self.file(location).display()
                ))),
                None => Ok(false),
            };
        }
        let stream = self.stream(location)?;
        let (mut raw, mut count, mut read) = (ptr::null(), 0, 0);
        // SAFETY: reader and stream are open; the call writes the rest.
        let code = unsafe {
            ffi::quell_otf2_read(self.reader, stream, most, &raw mut raw, &raw mut count, &raw mut read)
        };
        let raw = if count == 0 {
            &[]
        } else {
            // SAFETY: the reader's buffer holds `count` events until the next read.
            unsafe { slice::from_raw_parts(raw, count as usize) }
        };
        let place = &mut self.places[location];
        place.read += read.min(most);
        place.track.translate(&self.tables, raw, events)?;
        if code == 0 && read == most {
            return Ok(true);
        }
        place.track.end(&self.tables, events)?;
        let (read, reason) = (place.read, if code == 0 { "there are no more".into() } else { complaint() });
        Err(Damage(format!(
            "{} is damaged behind its first {read} of {whole} events: {reason}",
            self.file(location).display()
        )))
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

/// A reader that is closed on drop, in case opening the archive fails later.
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
        // SAFETY: the reader is open, and has no other owner.
        unsafe { ffi::quell_otf2_close(self.0) };
    }
}

/// Selects the locations, and returns the initial read position of each.
fn places(reader: &Closing, tables: &Tables, folder: &Path, chunk: u64) -> Result<Vec<Place>, String> {
    let locations = &tables.definitions.locations;
    let ids: Vec<u64> = locations.iter().map(|location| location.id).collect();
    let files: Vec<PathBuf> = ids.iter().map(|id| folder.join(format!("{id}.def"))).collect();
    let sound = |file: &PathBuf| {
        let extent = extent(file, chunk);
        let fits = extent.broken.is_none() && arrays::check(file, chunk, Scope::Local).is_ok();
        fits.then_some(extent.size)
    };
    // Damaged files of definitions are not read; if a location has none, its references are not mapped.
    let sizes: Vec<Option<u64>> = files.iter().map(sound).collect();
    let most: Vec<u64> = sizes.iter().map(|size| size.unwrap_or(0)).collect();
    let mut failed: Vec<c_int> = vec![0; ids.len()];
    // SAFETY: the reader is open; the lists have the length that is passed, and are written only within the call.
    let code = unsafe {
        ffi::quell_otf2_select(reader.0, ids.as_ptr(), most.as_ptr(), ids.len() as u64, failed.as_mut_ptr())
    };
    if code != 0 && !ids.is_empty() {
        return Err(format!("its events cannot be opened: {}", complaint()));
    }
    let sources = tables.definitions.sources.len();
    let place = |(at, location): (usize, &quell_recording::mpi::Location)| Place {
        track: Track::new(location.rank, location.id, sources),
        stream: ptr::null_mut(),
        read: 0,
        extent: None,
        end: (failed[at] != 0 || sizes[at].is_none() && files[at].exists()).then(|| {
            Err(Damage(format!("{} is damaged: the events cannot be understood", files[at].display())))
        }),
    };
    Ok(locations.iter().enumerate().map(place).collect())
}

/// The anchor file that a path stands for.
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
