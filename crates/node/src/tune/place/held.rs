//! What works while it is kept open.

use super::Trouble;
use crate::tune::catalogue::Held;
use crate::tune::root::Root;

pub fn read(_root: &Root, _what: Held) -> Result<String, Trouble> {
    Err(Trouble::Missing)
}

pub fn write(_root: &Root, _what: Held, _value: &str) -> Result<(), Trouble> {
    Err(Trouble::Missing)
}
