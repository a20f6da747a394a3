//! Other tools' files: whatever is in them, an answer or an error; and what was read from one can be written and read again.
#![no_main]

use std::path::Path;

use quell_recording::formats::{self, Format};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(found) = formats::parse_all(Path::new("fuzz"), bytes) else { return };
    let manifest = &found.recording.manifest;
    for of_rank in found.phases.chunk_by(|a, b| a.1.rank == b.1.rank) {
        for format in [Format::Psnap, Format::Vpsum] {
            let mut out = Vec::new();
            formats::export_phases(manifest, of_rank, format, &mut out).expect("memory has room");
            let again = formats::parse_all(Path::new("fuzz"), &out).expect("ours can be read");
            assert_eq!(again.phases.len(), of_rank.len());
        }
    }
});
