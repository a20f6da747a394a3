//! Collects an archive's definitions as they come from the library.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::slice;

use crate::ffi::{RawDefinition, definition};

/// A definition without its strings and members.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    pub(crate) own: u64,
    pub(crate) parent: u64,
    pub(crate) other: u64,
    pub(crate) number: u64,
    pub(crate) exponent: i64,
    pub(crate) members: Vec<u64>,
    pub(crate) name: u32,
    pub(crate) text: u32,
    pub(crate) file: u32,
    pub(crate) class: u32,
    pub(crate) paradigm: u32,
}

/// All definitions of an archive, by kind, in its order.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    strings: HashMap<u32, String>,
    kinds: [Vec<Plain>; 13],
}

/// Stores one definition. `user` is a [`Collected`].
pub(crate) extern "C" fn take(user: *mut c_void, raw: *const RawDefinition) {
    // SAFETY: the reader passes what it got for `user`, to which no other reference exists during the call, and a definition that is valid
    // for the call.
    let (collected, raw) = unsafe { (&mut *user.cast::<Collected>(), &*raw) };
    if raw.kind == definition::STRING {
        if !raw.string.is_null() {
            // SAFETY: a string of the library, which is NUL-terminated and valid for the call.
            let text = unsafe { CStr::from_ptr(raw.string) }.to_string_lossy().into_owned();
            collected.strings.insert(raw.own as u32, text); // references are 32 bits wide
        }
        return;
    }
    let members = if raw.members.is_null() {
        Vec::new()
    } else {
        // SAFETY: the library passes the number of members; they are valid for the call.
        unsafe { slice::from_raw_parts(raw.members, raw.count as usize) }.to_vec()
    };
    let &RawDefinition { own, parent, other, number, exponent, name, text, file, class, paradigm, .. } = raw;
    let plain = Plain { own, parent, other, number, exponent, members, name, text, file, class, paradigm };
    if let Some(list) = collected.kinds.get_mut(raw.kind as usize) {
        list.push(plain);
    }
}

impl Collected {
    pub(crate) fn records_of_kind(&self, kind: u32) -> &[Plain] {
        self.kinds.get(kind as usize).map_or(&[], Vec::as_slice)
    }

    /// The text of a string reference; empty if there is no such string.
    pub(crate) fn text(&self, reference: u32) -> &str {
        self.strings.get(&reference).map_or("", String::as_str)
    }
}
