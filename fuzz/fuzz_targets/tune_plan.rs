//! A plan is a file that others may have written, and root acts by it: what is read back may be written, whatever signed it.
#![no_main]

use quell_tune::journal::Transaction;
use quell_tune::plan::Plan;

libfuzzer_sys::fuzz_target!(|text: &str| {
    // A journal is root's own, but a disk may give back anything.
    let transaction = Transaction::read("id", text.as_bytes());
    assert!(transaction.begin.is_some() || transaction.entries.is_empty() || !transaction.damaged.is_empty());
    let _ = Plan::read(text);
    // As if the damage had been signed; else none would come beyond the hash.
    let Ok(mut plan) = serde_json::from_str::<Plan>(text) else { return };
    plan.hash = plan.hash_of();
    if let Ok(read) = Plan::read(&plan.to_json()) {
        assert_eq!(read, plan);
        assert!(!read.diff().contains(['\u{1b}', '\u{7}']));
    }
});
