//! A file of quell's own.

use super::Trouble;
use crate::tune::root::Root;

pub fn read(_root: &Root, _path: &str) -> Result<String, Trouble> {
    Err(Trouble::Missing)
}

pub fn write(_root: &Root, _path: &str, _value: &str) -> Result<(), Trouble> {
    Err(Trouble::Missing)
}
