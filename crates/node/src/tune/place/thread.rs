//! A property of a thread.

use super::Trouble;
use crate::tune::catalogue::Property;
use crate::tune::root::Root;

pub fn read(
    _root: &Root,
    _pid: u32,
    _start: u64,
    _comm: &str,
    _property: Property,
) -> Result<String, Trouble> {
    Err(Trouble::Missing)
}

pub fn write(
    _root: &Root,
    _pid: u32,
    _start: u64,
    _comm: &str,
    _property: Property,
    _value: &str,
) -> Result<(), Trouble> {
    Err(Trouble::Missing)
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its id.
    pub pid: u32,
    /// When it started, in clock ticks after boot.
    pub start: u64,
}

/// The only kernel thread of that name now.
pub fn successor(_root: &Root, _comm: &str) -> Option<Task> {
    None
}

/// When a process of this machine started, in clock ticks after boot; none where there is none.
pub fn started(_pid: u32) -> Option<u64> {
    None
}
