//! Other tools' files: whatever is in them, an answer or an error.
#![no_main]

use std::path::Path;

use quell_recording::formats;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = formats::parse(Path::new("fuzz"), bytes);
});
