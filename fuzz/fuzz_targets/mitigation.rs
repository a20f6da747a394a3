//! A mitigation is a site's file, and says what root writes: it is one, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quell_tune::catalogue::{Catalogue, Mitigation};

fuzz_target!(|text: &str| {
    let Ok(mitigation) = toml::from_str::<Mitigation>(text) else { return };
    // The rest of the checks are made of files.
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if mitigation.id.is_empty() || mitigation.id.len() > 64 || !mitigation.id.chars().all(plain) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(format!("{}.toml", mitigation.id)), text).unwrap();
    let _ = Catalogue::with_site(folder.path());
});
