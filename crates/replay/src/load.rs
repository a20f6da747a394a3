//! Loads a rank's track, starting from an environment variable. Everything read is checked; on any error the program runs unchanged.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::launched::Launched;
use crate::report::{self, Field, Report};
use crate::schedule::{Context, HEAD, Head, RankAssignment, Schedule, ScheduleError};
use crate::spin;
use crate::track::ProgressClockView;

/// The variable that names the schedule.
pub const SCHEDULE: &CStr = c"QUELL_REPLAY";
/// The variable that names the folder for reports.
pub const REPORTS: &CStr = c"QUELL_REPLAY_REPORTS";
/// The prefix of reports' file names. What follows is `HOST.PID.N`: one process that becomes other programs by `exec` has a report for each.
pub const REPORT_NAME: &str = "report.";
/// Maximum number of reports that a process writes.
const MOST_REPORTS: c_int = 4096;

const WITHOUT_NOISE: &str = "this process runs without noise";
const NOT_REPORTED: &str = "this process's noise is not reported";

/// The noise of this process.
#[derive(Debug)]
pub struct Loaded {
    /// Head and tables.
    pub schedule: Schedule<'static>,
    /// This process's place in the job.
    pub seat: RankAssignment,
    /// Its noise.
    pub track: ProgressClockView<'static>,
    /// Where it reports what it did.
    pub report: Report<'static>,
    /// When the trace began for all ranks, on this host's CLOCK_MONOTONIC.
    pub epoch_ns: u64,
}

/// Loads the schedule that the environment names. `None` if something is wrong, with one line on stderr, or, without one, if this process
/// should get no noise.
pub fn load(context: Context) -> Option<Loaded> {
    let path = variable(SCHEDULE)?;
    match open(path, context) {
        Ok(loaded) => loaded,
        Err(reason) => {
            complain(path, reason, WITHOUT_NOISE);
            None
        }
    }
}

/// The value of an environment variable.
fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: `name` is NUL-terminated, and so is the answer, which stays in place unless the program changes this variable of ours.
    unsafe {
        let text = libc::getenv(name.as_ptr());
        (!text.is_null()).then(|| CStr::from_ptr(text))
    }
}

/// Prints one line on stderr: what is wrong, why, and the consequence.
pub fn complain(what: &CStr, reason: &str, so: &str) {
    let parts = [b"quell replay: ", what.to_bytes(), b": ", reason.as_bytes(), b"; ", so.as_bytes(), b"\n"];
    let vectors =
        parts.map(|part| libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() });
    // SAFETY: each vector is a live slice that is only read. An error of this call has no place to be reported.
    let _ = unsafe { libc::writev(2, vectors.as_ptr(), vectors.len() as c_int) };
}

fn open(path: &CStr, context: Context) -> Result<Option<Loaded>, &'static str> {
    let file = File::open(path)?;
    let size = file.size()?;
    let mut first = [0u64; HEAD];
    file.read(&mut first, 0)?;
    let head = Head::from_words(&first).map_err(ScheduleError::reason)?;
    if head.words.checked_mul(8) != Some(size) {
        return Err(ScheduleError::Torn.reason());
    }
    if head.context != context {
        return Err("it is for another context");
    }
    let launched = Launched::here();
    let rank = launched.map(|found| u64::from(found.rank));
    let ranks = launched.and_then(|found| found.size).map_or(0, u64::from);
    if head.ranked_only && rank.is_none() {
        return Ok(None);
    }
    let tables = memory(head.tables_end())?;
    file.read(tables, 0)?;
    let schedule = Schedule::from_words(tables).map_err(ScheduleError::reason)?;
    let seat = schedule.seat(rank.unwrap_or(0));
    let entry = schedule.entry(seat.track).ok_or(ScheduleError::Table.reason())?;
    let words = memory(entry.words())?;
    file.read(words, entry.first)?;
    let track = entry.read(words).map_err(ScheduleError::reason)?;
    let bearable = match context {
        Context::Timer => track.bearable(),
        Context::Boundary | Context::Process => track.makes_progress(spin::LONGEST_BURN_NS),
    };
    bearable.map_err(ScheduleError::reason)?;
    let since = spin::wall_ns().saturating_sub(head.epoch_ns);
    let epoch_ns = spin::now_ns().wrapping_sub(since);
    let report = Report::over(report_words(head.events));
    let [name0, name1] = name();
    let facts = [
        (Field::Magic, report::MAGIC),
        (Field::Version, report::VERSION),
        // SAFETY: the call cannot fail.
        (Field::Pid, unsafe { libc::getpid() } as u64),
        (Field::Rank, rank.unwrap_or(u64::MAX)),
        (Field::Node, seat.node),
        (Field::ProgressClockView, seat.track),
        (Field::Name0, name0),
        (Field::Name1, name1),
        (Field::BlockPhases, head.block_phases),
        (Field::Ranks, ranks),
    ];
    facts.iter().for_each(|&(field, value)| report.set(field, value));
    report.export_as_injected_ns(if context == Context::Boundary { Field::AskedNs } else { Field::TookNs });
    Ok(Some(Loaded { schedule, seat, track, report, epoch_ns }))
}

/// The name of this process.
fn name() -> [u64; 2] {
    let mut name = [[0u8; 8]; 2];
    // SAFETY: the kernel writes at most 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name.map(u64::from_le_bytes)
}

/// An open file, closed on drop.
struct File(c_int);

impl File {
    fn open(path: &CStr) -> Result<Self, &'static str> {
        // Non-blocking, so that a pipe in the schedule's place cannot block the program forever.
        // SAFETY: `path` is NUL-terminated.
        let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK) };
        if file < 0 { Err("it cannot be opened") } else { Ok(Self(file)) }
    }

    fn size(&self) -> Result<u64, &'static str> {
        // SAFETY: zeros are a valid stat.
        let mut facts: libc::stat = unsafe { core::mem::zeroed() };
        // SAFETY: `facts` is valid for writes.
        if unsafe { libc::fstat(self.0, &raw mut facts) } != 0
            || facts.st_mode & libc::S_IFMT != libc::S_IFREG
        {
            return Err("it is not a file");
        }
        Ok(facts.st_size as u64)
    }

    /// Whether it is on a file system that shows a mapped file's contents to other hosts late, or only after an msync: NFS, SMB, 9P and
    /// FUSE. On a local disk an msync would only delay the end of each process.
    fn is_remote(&self) -> bool {
        // SAFETY: zeros are a valid value.
        let mut facts: libc::statfs = unsafe { core::mem::zeroed() };
        // SAFETY: `facts` is valid for writes.
        let known = unsafe { libc::fstatfs(self.0, &raw mut facts) } == 0;
        let kind = facts.f_type as u32;
        known && [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0x6573_5546].contains(&kind)
    }

    /// Fills `words` with the file's words from `first` on.
    fn read(&self, words: &mut [u64], first: u64) -> Result<(), &'static str> {
        let (wanted, begin) = (size_of_val(words), first.wrapping_mul(8));
        let mut done = 0usize;
        while done < wanted {
            // SAFETY: `done < wanted`, so the address is within `words` and has room for what is requested.
            let got = unsafe {
                let place = words.as_mut_ptr().cast::<u8>().add(done);
                libc::pread(
                    self.0,
                    place.cast(),
                    wanted.wrapping_sub(done),
                    begin.wrapping_add(done as u64) as i64,
                )
            };
            match got {
                1.. => done = done.wrapping_add(got as usize),
                0 => return Err(ScheduleError::Torn.reason()),
                // SAFETY: the address of this thread's errno.
                _ if unsafe { *libc::__errno_location() } == libc::EINTR => {}
                _ => return Err("it cannot be read"),
            }
        }
        if cfg!(target_endian = "big") {
            words.iter_mut().for_each(|word| *word = word.swap_bytes());
        }
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours.
        unsafe { libc::close(self.0) };
    }
}

/// Memory for this many words, never freed.
fn memory(words: u64) -> Result<&'static mut [u64], &'static str> {
    let count = usize::try_from(words).ok().filter(|count| *count > 0);
    let bytes = count.and_then(|count| count.checked_mul(8)).ok_or(ScheduleError::Head.reason())?;
    match map(bytes, -1) {
        // SAFETY: zeroed, aligned memory of this size that has no other owner and is never unmapped.
        Some(place) => Ok(unsafe { core::slice::from_raw_parts_mut(place.cast(), count.unwrap_or(0)) }),
        None => Err("there is no memory for it"),
    }
}

/// The words of this process's report: a shared file if the environment names a folder for it, or else private memory.
fn report_words(events: u64) -> &'static [AtomicU64] {
    let words = (events as usize).saturating_mul(report::EVENT).saturating_add(report::WORDS);
    let place = variable(REPORTS)
        .and_then(|folder| report_file(folder, words))
        .or_else(|| map(words.saturating_mul(8), -1));
    // SAFETY: aligned memory of this size that is never unmapped; other processes may change it, which atomics allow.
    place.map_or(&[], |place| unsafe { core::slice::from_raw_parts(place.cast(), words) })
}

fn report_file(folder: &CStr, words: usize) -> Option<*mut c_void> {
    let bytes = words.checked_mul(8)?;
    let mut host: [c_char; 65] = [0; 65];
    // SAFETY: the array has the length that is passed, and stays NUL-terminated.
    unsafe { libc::gethostname(host.as_mut_ptr(), host.len().wrapping_sub(1)) };
    let Some(file) = (0..MOST_REPORTS).find_map(|number| new_file(folder, &host, number)).flatten() else {
        complain(folder, "no report can be written there", NOT_REPORTED);
        return None;
    };
    // Blocks are allocated now: on a full disk, a later write to the mapping would end the program by SIGBUS.
    // SAFETY: a plain call on our own descriptor.
    if unsafe { libc::posix_fallocate(file.0, 0, bytes as i64) } != 0 {
        complain(folder, "there is no room for a report", NOT_REPORTED);
        return None;
    }
    let place = map(bytes, file.0)?;
    if file.is_remote() {
        SETTLED_BYTES.store(bytes, Ordering::Relaxed);
        SETTLED.store(place, Ordering::Release);
    }
    Some(place)
}

/// Creates a report's file with this number; `None` if the file exists already, `Some(None)` if it cannot be created. It never opens an
/// existing file: a child forked before this process called `exec` may still write to it, and would die if it were truncated.
fn new_file(folder: &CStr, host: &[c_char; 65], number: c_int) -> Option<Option<File>> {
    let mut path: [c_char; 4096] = [0; 4096];
    // SAFETY: the array has the length that is passed, all texts are NUL-terminated, and the numbers fit their formats.
    let file = unsafe {
        let form = c"%s/report.%s.%d.%d";
        let (place, pid) = (path.as_mut_ptr(), libc::getpid());
        let wanted =
            libc::snprintf(place, path.len(), form.as_ptr(), folder.as_ptr(), host.as_ptr(), pid, number);
        if wanted < 0 || wanted as usize >= path.len() {
            return Some(None);
        }
        libc::open(
            path.as_ptr(),
            libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW,
            0o644,
        )
    };
    if file >= 0 {
        return Some(Some(File(file)));
    }
    // SAFETY: the address of this thread's errno.
    let reason = unsafe { *libc::__errno_location() };
    (reason != libc::EEXIST).then_some(None)
}

/// The report's mapping, if other hosts see it only after an msync.
static SETTLED: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static SETTLED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Makes the report's current contents visible to other hosts.
pub fn sync_report() {
    let place = SETTLED.load(Ordering::Acquire);
    if !place.is_null() {
        // SAFETY: this many bytes are mapped there, and never unmapped.
        unsafe { libc::msync(place, SETTLED_BYTES.load(Ordering::Relaxed), libc::MS_SYNC) };
    }
}

#[cfg(all(any(feature = "boundary", feature = "timer"), not(test)))]
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

#[cfg(all(any(feature = "boundary", feature = "timer"), not(test)))]
extern "C" fn end() {
    sync_report();
}

/// Maps a file, or anonymous memory if the descriptor is -1.
fn map(bytes: usize, file: c_int) -> Option<*mut c_void> {
    let kind = if file < 0 { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS } else { libc::MAP_SHARED };
    // SAFETY: a new mapping overlaps no memory in use.
    let place = unsafe {
        libc::mmap(core::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, kind, file, 0)
    };
    (place != libc::MAP_FAILED).then_some(place)
}
