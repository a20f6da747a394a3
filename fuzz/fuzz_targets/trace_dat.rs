//! trace-cmd's files: the first bytes are a sound head's, the rest is hostile.
#![no_main]

use std::path::Path;

use quell_recording::formats;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let packed: &[u8] = [&b"none"[..], b"zstd", b"zlib"][usize::from(first >> 1) % 3];
    let head = match first & 1 {
        0 => b"\x17\x08\x44tracing6\0\0\x08\0\x10\0\0".to_vec(),
        _ => [b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0", packed, b"\x001\0"].concat(),
    };
    // A whole file is taken as it is.
    let file = if bytes.starts_with(b"\x17\x08\x44") { bytes.to_vec() } else { [&head, rest].concat() };
    if let Ok(found) = formats::parse_all(Path::new("fuzz"), &file) {
        for one in found.recording.intervals.iter().flat_map(|side| &side.intervals) {
            assert!(one.net <= one.duration);
        }
    }
});
