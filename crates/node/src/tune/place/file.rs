//! A file of the kernel's.

use super::Trouble;
use crate::tune::root::Root;

pub fn read(root: &Root, path: &str) -> Result<String, Trouble> {
    root.read(path).map_err(|e| Trouble::from_io(&e, ""))
}

pub fn write(root: &Root, path: &str, value: &str) -> Result<(), Trouble> {
    // A tree without a kernel behind it keeps what is written, so it gets back all that stood there.
    let word = if root.is_system() { chosen(value).unwrap_or(value) } else { value };
    root.write(path, word).map_err(|e| Trouble::from_io(&e, word))
}

/// The word in brackets, in a file that shows all words: `always [madvise] never`.
fn chosen(text: &str) -> Option<&str> {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word)
}

pub fn same(_path: &str, a: &str, b: &str) -> bool {
    chosen(a).unwrap_or(a).split_whitespace().eq(chosen(b).unwrap_or(b).split_whitespace())
}
