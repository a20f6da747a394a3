//! What works while it is kept open.

use super::Trouble;
use crate::tune::catalogue::Held;
use crate::tune::root::Root;

pub fn read(_root: &Root, _what: Held) -> Result<String, Trouble> {
    Err(Trouble::Missing)
}

/// Begins to hold it.
pub fn take(_what: Held, _value: &str) -> Result<std::os::fd::OwnedFd, Trouble> {
    Err(Trouble::Missing)
}
