//! The logs of an MPI run: any bytes behind any head end in events, damage or a reason.
#![no_main]

use quell_recording::mpi::Run as _;
use quell_recording::mpi_log::LogRun;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().unwrap();
    // Two logs, so that their definitions meet.
    let (first, second) = bytes.split_at(bytes.len() / 2);
    std::fs::write(folder.path().join("a.1.1.log"), first).unwrap();
    std::fs::write(folder.path().join("b.2.2.log"), second).unwrap();
    let Ok(mut run) = LogRun::open(folder.path()) else { return };
    let comms = run.definitions().comms.len();
    assert!(comms > 0);
    for location in 0..run.definitions().locations.len() {
        let mut events = Vec::new();
        while let Ok(true) = run.read(location, &mut events) {
            events.clear();
        }
    }
});
