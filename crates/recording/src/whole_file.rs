//! Reads whole files whose size others decide: what a file claims is no reason to allocate it.

use std::io::{self, Read as _, Seek as _};
use std::path::Path;

use fs_err as fs;

/// Maximum size of other tools' files, and of text that is kept in memory with its rows: 4 GiB.
pub const MOST_BYTES: u64 = 4 << 30;

/// Maximum size of files that describe something: a network, a model, a manifest. 64 MiB.
pub const MOST_DESCRIPTION_BYTES: u64 = 64 << 20;

/// Number of bytes that are read at a time.
const STEP: usize = 1 << 20;

/// The content of a file of at most `most` bytes.
///
/// # Errors
/// The system's; [`io::ErrorKind::FileTooLarge`]; [`io::ErrorKind::OutOfMemory`]. The text names the file.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_if(path, most, |_| Ok(()))
}

/// The same as text.
///
/// # Errors
/// As [`read`]; [`io::ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let no_text =
        |_| io::Error::new(io::ErrorKind::InvalidData, format!("{}: it is not text", path.display()));
    String::from_utf8(read(path, most)?).map_err(no_text)
}

/// Checks that a file of a recording is a regular one: a device in its place could have no end, and a pipe would block. This has to come before
/// the file is opened, because that blocks too. Links are followed, with which sites keep large files elsewhere.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`], and the system's.
pub(crate) fn require_regular(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_file() {
        return Ok(());
    }
    let text = format!("{}: it is not a regular file", path.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// The last `most` bytes of a regular file.
///
/// # Errors
/// As [`require_regular`].
pub(crate) fn read_end(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    require_regular(path)?;
    let mut file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(io::SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The content of a file of at most `most` bytes, once `accept` has seen its beginning, up to 1 MiB.
///
/// # Errors
/// As [`read`], and that of `accept`.
pub(crate) fn read_if<E: From<io::Error>>(
    path: &Path,
    most: u64,
    accept: impl FnOnce(&[u8]) -> Result<(), E>,
) -> Result<Vec<u8>, E> {
    let file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    let mut file = file.take(most.saturating_add(1));
    let mut bytes = Vec::new();
    fill(path, &mut file, &mut bytes, STEP)?;
    accept(&bytes)?;
    if length > most {
        return Err(too_large(path, length, most).into());
    }
    // Files in /proc and pipes have no length before they are read.
    let rest = usize::try_from(length).unwrap_or(usize::MAX).saturating_sub(bytes.len());
    reserve(path, &mut bytes, rest)?;
    while fill(path, &mut file, &mut bytes, STEP)? > 0 {}
    if bytes.len() as u64 > most {
        return Err(too_large(path, bytes.len() as u64, most).into());
    }
    Ok(bytes)
}

/// Reads up to `most` bytes more.
fn fill(path: &Path, file: &mut impl io::Read, bytes: &mut Vec<u8>, most: usize) -> io::Result<usize> {
    reserve(path, bytes, most)?;
    file.take(most as u64).read_to_end(bytes)
}

fn reserve(path: &Path, bytes: &mut Vec<u8>, more: usize) -> io::Result<()> {
    bytes.try_reserve(more).map_err(|_| {
        let needed = humanly((bytes.len() as u64).saturating_add(more as u64));
        let text = format!("{}: there is no memory for its {needed}", path.display());
        io::Error::new(io::ErrorKind::OutOfMemory, text)
    })
}

fn too_large(path: &Path, length: u64, most: u64) -> io::Error {
    let (length, most) = (humanly(length), humanly(most));
    let text = format!(
        "{}: it has {length}, and quell reads at most {most} of such a file: split it",
        path.display()
    );
    io::Error::new(io::ErrorKind::FileTooLarge, text)
}

fn humanly(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = UNITS.into_iter().find(|(unit, _)| bytes >= *unit);
    unit.map_or_else(
        || format!("{bytes} bytes"),
        |(unit, name)| format!("{:.1} {name}", bytes as f64 / unit as f64),
    )
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        for size in [0, 1, STEP - 1, STEP, STEP + 1, 3 * STEP] {
            let content: Vec<u8> = (0..size).map(|at| at as u8).collect();
            fs::write(&path, &content).unwrap();
            assert_eq!(read(&path, size as u64).unwrap(), content);
            if size > 0 {
                let error = read(&path, size as u64 - 1).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::FileTooLarge);
                assert!(error.to_string().contains("f: it has "), "{error}");
            }
        }
    }

    #[test]
    fn a_file_without_a_length_is_bounded_too() {
        assert_eq!(read(Path::new("/dev/zero"), 100).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert!(!read_text(Path::new("/proc/self/status"), MOST_BYTES).unwrap().is_empty());
    }

    #[test]
    fn a_sparse_file_of_any_size_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        fs::File::create(&path).unwrap().set_len(200 << 30).unwrap();
        let text = read(&path, MOST_BYTES).unwrap_err().to_string();
        assert!(text.contains("it has 200.0 GiB, and quell reads at most 4.0 GiB"), "{text}");
    }

    #[test]
    fn only_the_end_of_a_regular_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "0123456789").unwrap();
        let link = folder.path().join("link");
        fs_err::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(read_end(&link, 3).unwrap(), b"789");
        assert_eq!(read_end(&path, 100).unwrap(), b"0123456789");
        assert_eq!(read_end(Path::new("/dev/zero"), 3).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(read_end(folder.path(), 3).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
