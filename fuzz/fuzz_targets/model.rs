//! Noise models: a text that is accepted makes a trace that a clock accepts.
#![no_main]

use quell_recording::{Cpu, Nanos};
use quell_sim::{Model, ProgressClock};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(model) = Model::from_toml(text) else { return };
    let span = Nanos::from_nanos(10_000_000);
    if model.expected_detours(span) < 1e5 {
        if let Ok(trace) = model.trace(Cpu(0), span, 1) {
            let _ = ProgressClock::new(&trace);
        }
    }
});
