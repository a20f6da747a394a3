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
