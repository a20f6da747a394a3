//! The tree that is read and changed: this machine's, or a copy of another machine's below a folder (`--sysroot`).

use std::collections::BTreeSet;
use std::ffi::OsStr;
// Not `fs_err`: it hides the error number, on which the reason for a failure depends; the path is known anyway.
use std::fs;
use std::io;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Maximum size of a kernel file; a longer one is not the kernel's.
pub(super) const LONGEST: u64 = 1 << 20;

/// In a copy of a machine: the paths that were not readable there, one a line. They are empty in the copy.
pub(super) const NOT_READABLE: &str = "not-readable";

/// Where `/proc`, `/sys` and `/etc` are.
#[derive(Clone, Debug)]
pub struct Root {
    folder: PathBuf,
    /// The paths of a copy that were not readable on the machine.
    unread: Arc<BTreeSet<String>>,
    /// The paths that were looked at, if they are recorded.
    seen: Option<Arc<Mutex<BTreeSet<String>>>>,
}

impl PartialEq for Root {
    fn eq(&self, other: &Self) -> bool {
        self.folder == other.folder
    }
}

impl Eq for Root {}

impl Root {
    /// This machine.
    pub fn system() -> Self {
        Self { folder: PathBuf::from("/"), unread: Arc::default(), seen: None }
    }

    /// This tree, with a record of each path that is looked at from now on.
    pub(super) fn recorded(&self) -> Self {
        Self { seen: Some(Arc::default()), ..self.clone() }
    }

    /// The paths that were looked at.
    pub(super) fn seen(&self) -> BTreeSet<String> {
        self.seen.as_ref().and_then(|seen| Some(seen.lock().ok()?.clone())).unwrap_or_default()
    }

    fn note(&self, path: &str) {
        if let Some(seen) = &self.seen
            && let Ok(mut seen) = seen.lock()
        {
            seen.insert(format!("/{}", path.trim_start_matches('/')));
        }
    }

    /// A tree below a folder.
    ///
    /// # Errors
    /// If it is not a folder, or what the copy says of its paths cannot be read.
    pub fn at(folder: &Path) -> io::Result<Self> {
        let folder = fs_err::canonicalize(folder)?;
        if !folder.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::NotADirectory,
                format!("{} is not a folder", folder.display()),
            ));
        }
        let mut root = Self { folder, unread: Arc::default(), seen: None };
        let unread = match root.read(NOT_READABLE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(root),
            text => text?,
        };
        root.unread = Arc::new(unread.lines().map(str::to_owned).collect());
        Ok(root)
    }

    /// Whether it is this machine, where a kernel is behind the files.
    pub fn is_system(&self) -> bool {
        self.folder == Path::new("/")
    }

    /// The location of a path of the machine.
    pub fn path(&self, path: &str) -> PathBuf {
        self.note(path);
        self.folder.join(path.trim_start_matches('/'))
    }

    /// Reads a file as text.
    ///
    /// # Errors
    /// The kernel's error; `InvalidData` for a file that is not text, or is too long; `PermissionDenied` for a link that leaves the tree, and for
    /// what was not readable on the copied machine.
    pub fn read(&self, path: &str) -> io::Result<String> {
        let bytes = self.read_bytes(path, LONGEST)?;
        String::from_utf8(bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("{path} is not text")))
    }

    /// Reads a file that may contain any bytes, process names for instance, or be longer than most.
    ///
    /// # Errors
    /// As [`Self::read`], except that the file need not be text.
    pub fn read_bytes(&self, path: &str, longest: u64) -> io::Result<Vec<u8>> {
        use std::io::Read as _;
        let inside = self.inside(path)?;
        self.readable(&inside)?;
        // Non-blocking, because a pipe in a hostile tree would block the open.
        let file = fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(inside)?;
        let mut bytes = Vec::new();
        file.take(longest + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > longest {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{path} is longer than {longest} bytes"),
            ));
        }
        Ok(bytes)
    }

    /// Writes the complete contents of an existing file with one write, as kernel files require.
    ///
    /// # Errors
    /// The kernel's error, whose number gives the reason: see [`super::place::PlaceError`].
    pub fn write(&self, path: &str, text: &str) -> io::Result<()> {
        let inside = self.inside(path)?;
        let mut file = fs::OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(inside)?;
        let mut bytes = text.as_bytes().to_vec();
        // In a copy, a write that fails leaves the old value too, as in the kernel: it is overwritten, and the rest is cut off afterwards.
        if !self.is_system() {
            let old = file.metadata()?.len().min(LONGEST) as usize;
            bytes.resize(old.max(text.len()), b'\n');
        }
        let written = file.write(&bytes)?;
        if written != bytes.len() {
            return Err(io::Error::new(
                io::ErrorKind::WriteZero,
                format!("{path} took {written} of {} bytes", bytes.len()),
            ));
        }
        if self.is_system() { Ok(()) } else { file.set_len(text.len() as u64) }
    }

    /// Whether a path exists.
    pub fn has(&self, path: &str) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    /// The names in a folder, in natural order (`cpu2` before `cpu10`); empty if the folder does not exist.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(folder)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_by_cached_key(|name| natural(name));
        names.iter().for_each(|name| self.note(&format!("{}/{name}", folder.trim_end_matches('/'))));
        names
    }

    /// The number of entries of a folder.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn entries(&self, folder: &str) -> io::Result<usize> {
        let folder = self.path(folder);
        self.readable(&folder)?;
        Ok(fs::read_dir(folder)?.count())
    }

    /// All paths that match a pattern with `*`, in natural order. A path without `*` matches itself if it exists.
    pub fn glob(&self, pattern: &str) -> Vec<String> {
        let mut found = vec![String::new()];
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            let mut next = Vec::new();
            for folder in &found {
                if part.contains('*') {
                    let here = if folder.is_empty() { "/" } else { folder };
                    let names = self.names(here).into_iter().filter(|name| fits(part, name));
                    next.extend(names.map(|name| format!("{folder}/{name}")));
                } else {
                    next.push(format!("{folder}/{part}"));
                }
            }
            found = next;
        }
        found.retain(|path| self.has(path));
        found
    }

    /// The location at which a file exists or will be created: links in its folder are followed, the file itself is not.
    ///
    /// # Errors
    /// If the folder does not exist, or a link leads out of the tree.
    pub(super) fn spot(&self, path: &str) -> io::Result<PathBuf> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name.is_empty() || name == "." || name == ".." {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{path} names nothing")));
        }
        let folder = if folder.is_empty() { "/" } else { folder };
        Ok(fs::canonicalize(self.inside(folder)?)?.join(name))
    }

    /// Refuses what the copied machine refused to read.
    fn readable(&self, spot: &Path) -> io::Result<()> {
        let Ok(path) = spot.strip_prefix(&self.folder) else { return Ok(()) };
        if self.unread.is_empty() || !self.unread.contains(&format!("/{}", path.display())) {
            return Ok(());
        }
        let text = format!("/{} was not readable on the copied machine", path.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    }

    /// A path of the tree after its links are resolved; an error if they lead out of it.
    pub(super) fn inside(&self, path: &str) -> io::Result<PathBuf> {
        if self.is_system() {
            self.note(path);
            return Ok(PathBuf::from(path));
        }
        let real = fs::canonicalize(self.path(path))?;
        if real.starts_with(&self.folder) {
            return Ok(real);
        }
        let text = format!("{path} is a link out of {}", self.folder.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    }
}

impl AsRef<OsStr> for Root {
    fn as_ref(&self) -> &OsStr {
        self.folder.as_os_str()
    }
}

/// Whether a name matches a pattern in which `*` stands for any text.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut rest = rest;
    while let Some((part, after)) = rest.split_once('*') {
        let Some(at) = name.find(part) else { return false };
        name = name.get(at + part.len()..).unwrap_or("");
        rest = after;
    }
    name.len() >= rest.len() && name.ends_with(rest)
}

/// A sort key that orders numbers within names by value.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(text);
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (number, after) = after.split_at(digits);
        key.push((word.to_owned(), number.parse().unwrap_or(u64::MAX)));
        rest = after;
    }
    key
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;
    use fs_err as fs;

    #[test]
    fn a_star_stands_for_part_of_a_name() {
        for (pattern, name, good) in [
            ("cpu*", "cpu12", true),
            ("cpu*", "cpufreq", true),
            ("*_msecs", "events_poll_msecs", true),
            ("rx-*", "tx-0", false),
            ("a*b*c", "aXbYc", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(fits(pattern, name), good, "{pattern} {name}");
        }
    }

    #[test]
    fn a_glob_lists_what_is_there_in_natural_order() {
        let folder = tempfile::tempdir().unwrap();
        for cpu in [10, 2, 0] {
            fs::create_dir_all(folder.path().join(format!("sys/cpu{cpu}/power"))).unwrap();
            fs::write(folder.path().join(format!("sys/cpu{cpu}/power/x")), "1").unwrap();
        }
        let root = Root::at(folder.path()).unwrap();
        assert_eq!(
            root.glob("/sys/cpu*/power/x"),
            ["/sys/cpu0/power/x", "/sys/cpu2/power/x", "/sys/cpu10/power/x"]
        );
        assert!(root.glob("/sys/cpu*/power/y").is_empty());
    }

    #[test]
    fn a_link_out_of_a_tree_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("x")).unwrap();
        let root = Root::at(folder.path()).unwrap();
        assert_eq!(root.read("/x").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(root.write("/x", "1").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn what_was_not_readable_is_not_readable_in_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("sys/debug")).unwrap();
        fs::write(folder.path().join("sys/x"), "").unwrap();
        fs::write(folder.path().join("sys/y"), "1").unwrap();
        fs::write(folder.path().join(NOT_READABLE), "/sys/x\n/sys/debug\n").unwrap();
        let root = Root::at(folder.path()).unwrap();
        assert_eq!(root.read("/sys/x").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(root.entries("/sys/debug").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(root.read("/sys/y").unwrap(), "1");
    }
}
