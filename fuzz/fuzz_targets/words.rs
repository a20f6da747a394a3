//! What people type: times, CPU lists, limits.
#![no_main]

use quell_analysis::compare::Limit;
use quell_recording::{Nanos, format_cpu_list, parse_cpu_list};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(time) = text.parse::<Nanos>() {
        let _ = time.to_string().parse::<Nanos>();
    }
    if let Ok(cpus) = parse_cpu_list(text) {
        assert_eq!(parse_cpu_list(&format_cpu_list(&cpus)), Ok(cpus));
    }
    let _ = text.parse::<Limit>();
});
