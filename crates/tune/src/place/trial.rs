//! Shared by tests on the real kernel: they report when they cannot run, and restore what they change.

#![allow(clippy::print_stderr, reason = "a test that does not run must say so")]

use super::Place;
use crate::root::Root;

pub fn is_root() -> bool {
    super::trouble::is_root()
}

pub use quell_testing::{machine as alone, skip, skip_for_hardware};

/// Restores the value of a place of this machine, also when a test panics.
pub struct GiveBack {
    place: Place,
    value: String,
}

impl GiveBack {
    pub fn new(place: &Place) -> Option<Self> {
        let value = place.read(&Root::system()).ok()?;
        Some(Self { place: place.clone(), value })
    }
}

impl Drop for GiveBack {
    fn drop(&mut self) {
        let root = Root::system();
        if self.place.read(&root).is_ok_and(|now| self.place.same(&now, &self.value)) {
            return;
        }
        if let Err(trouble) = self.place.write(&root, &self.value) {
            eprintln!("{} keeps what a test wrote: {trouble}", self.place);
        }
        let now = self.place.read(&root).unwrap_or_default();
        if !std::thread::panicking() {
            assert!(self.place.same(&now, &self.value), "{}: {now} is not {}", self.place, self.value);
        }
    }
}
