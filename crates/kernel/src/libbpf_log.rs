//! Keeps libbpf's log for the error that may follow; never prints it.

use std::sync::Mutex;

use libbpf_rs::PrintLevel;

/// The last warnings, shortened.
static PRINTED: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Number of warnings kept: enough to see what was refused and why.
const KEPT: usize = 3;
const LONGEST: usize = 400;

/// Keeps libbpf's warnings from here on.
pub(crate) fn keep() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
        if let Ok(mut printed) = PRINTED.lock() {
            printed.push(text.trim().chars().take(LONGEST).collect());
            if printed.len() > KEPT {
                printed.remove(0);
            }
        }
    })));
}

/// Takes the last warnings as one line.
pub(crate) fn last_words() -> String {
    PRINTED
        .lock()
        .map(|mut printed| std::mem::take(&mut *printed).join("; ").replace('\n', " "))
        .unwrap_or_default()
}
