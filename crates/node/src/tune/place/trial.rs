//! What tests on the real kernel share: they say aloud when they cannot run, and give back what they change.

#![allow(clippy::print_stderr, reason = "a test that does not run must say so")]

use super::Place;
use crate::tune::root::Root;

pub fn is_root() -> bool {
    super::trouble::is_root()
}

/// Keeps other tests on this kernel, of other processes too, from changing what this one looks at.
pub fn alone() -> std::fs::File {
    let path = std::env::temp_dir().join("quell-kernel-tests.lock");
    let opened = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = opened.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    file.lock().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    file
}

pub fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// Gives a place of this machine its value back, also when a test panics.
pub struct GiveBack {
    place: Place,
    value: String,
}

impl GiveBack {
    pub fn of(place: &Place) -> Option<Self> {
        let value = place.read(&Root::system()).ok()?;
        Some(Self { place: place.clone(), value })
    }
}

impl Drop for GiveBack {
    fn drop(&mut self) {
        let root = Root::system();
        if let Err(trouble) = self.place.write(&root, &self.value) {
            eprintln!("{} keeps what a test wrote: {trouble}", self.place);
        }
        let now = self.place.read(&root).unwrap_or_default();
        if !std::thread::panicking() {
            assert!(self.place.same(&now, &self.value), "{}: {now} is not {}", self.place, self.value);
        }
    }
}
