//! Other tools' files: whatever is in them, an answer or an error; and what was read from one can be written and read again.
#![no_main]

use std::path::Path;

use quell_recording::Method;
use quell_recording::formats::{self, Format};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(found) = formats::parse_all(Path::new("fuzz"), bytes) else { return };
    // A few bytes of PSNAP's histograms count millions of quanta, which take long to write.
    if found.phases.len() > 1 << 16 {
        return;
    }
    let (recording, manifest) = (&found.recording, &found.recording.manifest);
    for of_rank in found.phases.chunk_by(|a, b| a.1.rank == b.1.rank) {
        for format in [Format::Psnap, Format::Vpsum] {
            let mut out = Vec::new();
            formats::export_phases(manifest, of_rank, format, &mut out).expect("memory has room");
            let again = formats::parse_all(Path::new("fuzz"), &out).expect("ours can be read");
            assert_eq!(again.phases.len(), of_rank.len());
        }
    }
    if manifest.method == Method::Phases {
        return;
    }
    let mut out = Vec::new();
    formats::export(recording, Format::Csv, &mut out).expect("memory has room");
    let again = formats::parse_all(Path::new("fuzz"), &out).expect("ours can be read").recording;
    let rows = |side: &quell_recording::Recording| -> usize {
        let intervals = side.intervals.iter().map(|one| one.intervals.len());
        let buckets = side.histograms.iter().map(|one| one.buckets.len());
        intervals.chain(buckets).sum()
    };
    if manifest.method != Method::Detour {
        assert_eq!(rows(&again), rows(recording));
    }
    let mut out = Vec::new();
    formats::export(recording, Format::Chrome, &mut out).expect("memory has room");
});
