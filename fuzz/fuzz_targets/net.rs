//! Networks in files: what is read is written so that it is read again.
#![no_main]

use quell_analysis::bench::loggp::preset::Preset;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(preset) = Preset::from_toml(text) else { return };
    if let Ok(written) = preset.to_toml() {
        let again = Preset::from_toml(&written);
        assert!(again.is_ok(), "{again:?}");
    }
});
