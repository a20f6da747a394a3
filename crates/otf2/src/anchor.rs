//! Checks an anchor file before the library loads it, which allocates and frees as many properties as the file says it has, up to 2³².
//!
//! The layout is that of `OTF2_AnchorFile.c` in OTF2 3.0: a mark and the byte order, `OTF2`, five bytes of versions and two chunk sizes, two
//! bytes of substrate and compression, the numbers of locations and definitions, three texts, and the properties.

use std::io::Read;
use std::path::Path;

use fs_err::File;

use crate::chunks::{BIG_ENDIAN, LITTLE_ENDIAN};

/// Maximum size of an anchor file that is read; others have some hundred bytes.
const LARGEST: u64 = 16 << 20;
/// Where the three texts begin: machine, creator, description.
const TEXTS: usize = 46;
/// Minimum size of a property: two empty texts.
const PROPERTY: usize = 2;

/// Checks the number of properties. What else is wrong with the file the library finds.
///
/// # Errors
/// Why the library should not load it.
pub(crate) fn check(path: &Path) -> Result<(), String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("it is larger than {} MiB, and so no anchor file", LARGEST >> 20));
    }
    match properties(&bytes) {
        Some((count, room)) if count as usize > room / PROPERTY => {
            Err(format!("it says that it has {count} properties, and has {room} bytes for them"))
        }
        _ => Ok(()),
    }
}

/// The number of properties, and the number of bytes after it; `None` if the file ends before it.
fn properties(bytes: &[u8]) -> Option<(u32, usize)> {
    let read = match *bytes.get(1)? {
        LITTLE_ENDIAN => u32::from_le_bytes,
        BIG_ENDIAN => u32::from_be_bytes,
        _ => return None,
    };
    let mut rest = bytes.get(TEXTS..)?;
    for _ in 0..3 {
        let end = rest.iter().position(|&byte| byte == 0)?;
        rest = &rest[end + 1..];
    }
    let (count, rest) = rest.split_first_chunk()?;
    Some((read(*count), rest.len()))
}
