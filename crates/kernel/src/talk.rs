//! What libbpf says: kept for the error that may follow, never printed.

use std::sync::Mutex;

use libbpf_rs::PrintLevel;

/// The last warnings, shortened.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// So many are enough to see what was refused and why.
const KEPT: usize = 3;
const LONGEST: usize = 400;

/// From here on libbpf's warnings are kept.
pub(crate) fn keep() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
        if let Ok(mut said) = SAID.lock() {
            said.push(text.trim().chars().take(LONGEST).collect());
            if said.len() > KEPT {
                said.remove(0);
            }
        }
    })));
}

/// The last warnings in one line, which are then forgotten.
pub(crate) fn last_words() -> String {
    SAID.lock().map(|mut said| std::mem::take(&mut *said).join("; ").replace('\n', " ")).unwrap_or_default()
}
