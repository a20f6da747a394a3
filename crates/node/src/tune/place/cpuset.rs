//! quell's cpuset.

use super::Trouble;
use crate::tune::catalogue::CpusetKind;
use crate::tune::root::Root;

pub fn read(_root: &Root, _what: CpusetKind) -> Result<String, Trouble> {
    Err(Trouble::Missing)
}

pub fn write(_root: &Root, _what: CpusetKind, _value: &str) -> Result<(), Trouble> {
    Err(Trouble::Missing)
}
