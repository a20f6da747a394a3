//! An archive of which one file is hostile: the first byte says which. The library is C, and aborts on what it does not bear.
#![no_main]

use std::fs::File;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::LazyLock;

use quell_otf2::{Archive, Writer};
use quell_recording::mpi::{BLOCKING, Comm, Definitions, Event, Location, Region, Run, What};
use tempfile::TempDir;

/// Where the anchor file has the size of a chunk of definitions. The library gets memory for one with each file that it opens; the least that it
/// takes makes four times as many executions.
const CHUNK: std::ops::Range<usize> = 20..28;
const WRITTEN: u64 = 4 << 20;
const LEAST: u64 = 256 << 10;
const FILES: [&str; 4] = ["traces.otf2", "traces.def", "traces/0.evt", "traces/0.def"];

/// The first descriptor that is free before an input.
static FREE: LazyLock<RawFd> = LazyLock::new(free);

fn free() -> RawFd {
    File::open("/dev/null").unwrap().as_raw_fd()
}

/// Closes what the library leaves open: the anchors of some archives that it cannot open.
fn close_leftovers() {
    for left in *FREE..free() {
        // SAFETY: the input is over, and what it opened is not used again.
        drop(unsafe { OwnedFd::from_raw_fd(left) });
    }
}

/// A sound archive in a folder, and its files.
static SOUND: LazyLock<(TempDir, [Vec<u8>; 4])> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let definitions = Definitions {
        regions: vec![Region { name: "MPI_Send".into(), site: None, mpi: true }],
        comms: vec![Comm { name: "MPI_COMM_WORLD".into(), members: vec![0], remote: None }],
        locations: vec![Location { id: 0, name: "main".into(), rank: 0, thread: 0, host: "n0".into() }],
        sources: vec!["tick".into()],
        span_ns: [0, 10],
    };
    let mut writer = Writer::create(folder.path(), &definitions).unwrap();
    let send = What::Send { comm: 0, to: 0, tag: 0, bytes: 8, request: BLOCKING };
    for (time_ns, what) in [
        (0, What::Enter(0)),
        (1, send),
        (1, What::Fork { threads: 2 }),
        (1, What::TeamBegin),
        (1, What::TeamEnd),
        (1, What::Join),
        (2, What::Noise { source: 0, total_ns: 1 }),
        (2, What::Leave(0)),
    ] {
        writer.event(0, Event { time_ns, what }).unwrap();
    }
    writer.finish().unwrap();
    let mut files = FILES.map(|file| std::fs::read(folder.path().join(file)).unwrap());
    assert_eq!(files[0][CHUNK], WRITTEN.to_le_bytes());
    files[0][CHUNK].copy_from_slice(&LEAST.to_le_bytes());
    std::fs::write(folder.path().join(FILES[0]), &files[0]).unwrap();
    (folder, files)
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((which, content)) = bytes.split_first() else { return };
    let (folder, files) = &*SOUND;
    LazyLock::force(&FREE);
    let which = usize::from(which % 4);
    let path = |file: &str| -> PathBuf { folder.path().join(file) };
    std::fs::write(path(FILES[which]), content).unwrap();
    if let Ok(mut archive) = Archive::open(folder.path()) {
        let mut events = Vec::new();
        for location in 0..archive.definitions().locations.len() {
            while matches!(archive.read(location, &mut events), Ok(true)) {
                events.clear();
            }
        }
    }
    close_leftovers();
    std::fs::write(path(FILES[which]), &files[which]).unwrap();
});
