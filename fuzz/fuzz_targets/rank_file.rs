//! The file of a rank of an MPI program: any bytes end in a file or a reason, and a cut file keeps what is whole.
#![no_main]

use quell_recording::rank_file::RankFile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = RankFile::parse(bytes) else { return };
    for series in &file.series {
        for name in &series.columns {
            assert_eq!(series.column(name).unwrap().len(), series.len());
        }
    }
});
