//! A recording of which one file is hostile: the first byte says which.
#![no_main]

use quell_recording::Recording;

const MANIFEST: &str = r#"{"format":"quell.recording","version":1,"quell":"0","state":"recording","note":null,
"host":null,"kernel":null,"processor":null,"command":[],"zero_unix_ns":null,"zero_monotonic_ns":null,
"method":"detour","clock":null,"threshold_ns":null,"quantum_ns":null,"cpus":[{"cpu":0,"core":null,"package":null,
"numa_node":null,"start_ns":0,"end_ns":1000000,"resolution_ns":null,"probe_loop":null,"lost":0}],"warnings":[]}"#;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((which, content)) = bytes.split_first() else { return };
    let name = [
        "manifest.json",
        "detours.arrow",
        "detours.parquet",
        "progress.jsonl",
        "intervals.arrow",
        "intervals.parquet",
        "threads.arrow",
        "quanta.arrow",
        "quanta.parquet",
    ][usize::from(which % 9)];
    // The decoders' panics on damaged tables are contained by the reader; only what escapes it is a finding.
    std::panic::set_hook(Box::new(|_| ()));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("manifest.json"), MANIFEST).unwrap();
    std::fs::write(folder.path().join(name), content).unwrap();
    let _ = Recording::open(folder.path());
    let _ = quell_recording::read_phases(folder.path());
});
