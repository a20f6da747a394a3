//! An interrupt's affinity.

use super::Trouble;
use crate::tune::root::Root;

pub fn read(_root: &Root, _number: u32, _name: &str) -> Result<String, Trouble> {
    Err(Trouble::Missing)
}

pub fn write(_root: &Root, _number: u32, _name: &str, _value: &str) -> Result<(), Trouble> {
    Err(Trouble::Missing)
}

pub fn pending(_root: &Root, _number: u32) -> Option<String> {
    None
}
