//! A unit of systemd.

use super::Trouble;
use crate::tune::root::Root;

pub fn read(_root: &Root, _name: &str) -> Result<String, Trouble> {
    Err(Trouble::Missing)
}

pub fn write(_root: &Root, _name: &str, _value: &str) -> Result<(), Trouble> {
    Err(Trouble::Missing)
}
