//! The storage of journals and the lock: folders that only their owner can enter, opened without following links.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::root::Root;

/// Journals of open transactions; those closed last are in `closed` below it.
const JOURNALS: [&str; 4] = ["var", "lib", "quell", "tune"];
/// The folder of the lock.
const LOCKS: [&str; 2] = ["run", "quell"];
/// The ending of a journal's name.
const JOURNAL: &str = ".jsonl";
/// The ending as long as its first record is not on disk.
const BEGUN: &str = ".jsonl.new";
/// Number of closed journals that are kept.
const KEPT: usize = 20;

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another quell holds the lock.
    #[error("another quell is applying or reverting on this machine ({0} is locked): wait until it is done")]
    Locked(PathBuf),
    /// A folder that other users can write, a link, …
    #[error("{path}: {reason}")]
    Unsafe {
        /// The folder or file.
        path: PathBuf,
        /// The problem, and what to do.
        reason: String,
    },
    /// The kernel returned an error.
    #[error("{path}: {source}")]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

impl StoreError {
    /// Whether root privileges are missing.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }
}

/// The folder of journals.
#[derive(Debug)]
pub struct Store {
    folder: OwnedFd,
    path: PathBuf,
}

/// The lock, held while a transaction is applied or reverted. The kernel releases it with the process, however that ends.
#[derive(Debug)]
pub struct Lock {
    _folder: OwnedFd,
    _file: Option<OwnedFd>,
}

impl Store {
    /// Opens the store, and creates it if necessary.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn open(root: &Root) -> Result<Self, StoreError> {
        let (folder, path) = private_folder(root, &JOURNALS, true)?;
        Ok(Self { folder, path })
    }

    /// Opens the store if it exists.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn open_if_there(root: &Root) -> Result<Option<Self>, StoreError> {
        match private_folder(root, &JOURNALS, false) {
            Ok((folder, path)) => Ok(Some(Self { folder, path })),
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The path of a journal, for messages.
    pub fn path_of(&self, id: &str) -> PathBuf {
        self.path.join(file_name(id))
    }

    /// The ids of open journals, oldest first.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn ids(&self) -> Result<Vec<String>, StoreError> {
        self.ids_in(self.folder.as_fd())
    }

    /// Ids of closed journals, the one that was closed first first. Ids are by the beginning, and a journal's last line is written when it is closed.
    fn ids_by_end(&self, closed: BorrowedFd<'_>) -> Result<Vec<String>, StoreError> {
        let mut ids = self.ids_in(closed)?;
        let end = |id: &String| {
            let facts = fs::statat(closed, file_name(id), AtFlags::SYMLINK_NOFOLLOW).ok();
            (facts.map(|facts| (facts.st_mtime, facts.st_mtime_nsec)), id.clone())
        };
        ids.sort_by_cached_key(end);
        Ok(ids)
    }

    fn ids_in(&self, folder: impl AsFd) -> Result<Vec<String>, StoreError> {
        self.names_in(folder, JOURNAL)
    }

    fn names_in(&self, folder: impl AsFd, ending: &str) -> Result<Vec<String>, StoreError> {
        let failed = |e: Errno| self.failed("", e);
        let mut ids = Vec::new();
        for entry in fs::Dir::read_from(folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
            ids.extend(name.strip_suffix(ending).map(str::to_owned));
        }
        ids.sort();
        Ok(ids)
    }

    /// The text of a journal.
    ///
    /// # Errors
    /// The kernel's error; a link, or a file of another user, is refused.
    pub fn read(&self, id: &str) -> Result<Vec<u8>, StoreError> {
        use std::io::Read as _;
        let mut file = self.open_file(id, JOURNAL, OFlags::RDONLY)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|source| StoreError::Io { path: self.path_of(id), source })?;
        Ok(bytes)
    }

    /// As [`Self::read`]; none if the journal no longer exists.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn read_if_there(&self, id: &str) -> Result<Option<Vec<u8>>, StoreError> {
        match self.read(id) {
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            other => other.map(Some),
        }
    }

    /// Creates a journal under a name that no one reads, and removes those that a crash left there.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn create(&self, id: &str) -> Result<File, StoreError> {
        self.remove_begun()?;
        self.open_file(id, BEGUN, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    /// Removes journals that a crash left before they had their names: nothing was written to the machine yet.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn remove_begun(&self) -> Result<(), StoreError> {
        for old in self.names_in(self.folder.as_fd(), BEGUN)? {
            // It does no harm, so an error is ignored.
            let _ = fs::unlinkat(&self.folder, format!("{old}{BEGUN}"), AtFlags::empty());
        }
        Ok(())
    }

    /// Gives a created journal its name, which is on disk when this returns.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn publish(&self, id: &str) -> Result<(), StoreError> {
        let begun = format!("{id}{BEGUN}");
        fs::renameat(&self.folder, &begun, &self.folder, file_name(id)).map_err(|e| self.failed(id, e))?;
        self.sync(id)
    }

    /// Removes a journal that was created and not published.
    pub fn discard(&self, id: &str) {
        // The next `create` tries again.
        let _ = fs::unlinkat(&self.folder, format!("{id}{BEGUN}"), AtFlags::empty());
    }

    /// Opens a journal to continue it.
    ///
    /// # Errors
    /// The kernel's error; a link, or a file of another user, is refused.
    pub fn append(&self, id: &str) -> Result<File, StoreError> {
        self.open_file(id, JOURNAL, OFlags::RDWR)
    }

    /// Moves a finished journal to the closed ones.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn close(&self, id: &str) -> Result<(), StoreError> {
        let closed = self.closed(true)?;
        let name = file_name(id);
        fs::renameat(&self.folder, &name, &closed, &name).map_err(|e| self.failed(id, e))?;
        self.sync(id)?;
        fs::fsync(&closed).map_err(|e| self.failed(id, e))?;
        let ids = self.ids_by_end(closed.as_fd())?;
        for old in ids.iter().take(ids.len().saturating_sub(KEPT)).filter(|old| *old != id) {
            // An extra journal does no harm, so an error is ignored.
            let _ = fs::unlinkat(&closed, file_name(old), AtFlags::empty());
        }
        Ok(())
    }

    /// The journal that was closed last, if any.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn last_closed(&self) -> Result<Option<(String, Vec<u8>)>, StoreError> {
        let Ok(folder) = self.closed(false) else { return Ok(None) };
        let closed = Self { folder, path: self.path.join("closed") };
        let Some(id) = closed.ids_by_end(closed.folder.as_fd())?.pop() else { return Ok(None) };
        let bytes = closed.read(&id)?;
        Ok(Some((id, bytes)))
    }

    fn closed(&self, make: bool) -> Result<OwnedFd, StoreError> {
        step_into(self.folder.as_fd(), "closed", make, true).map_err(|reason| match reason {
            Step::Io(e) => self.failed("closed", e),
            Step::Unsafe(reason) => StoreError::Unsafe { path: self.path.join("closed"), reason },
        })
    }

    fn open_file(&self, id: &str, ending: &str, flags: OFlags) -> Result<File, StoreError> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = fs::openat(&self.folder, format!("{id}{ending}"), flags, Mode::from(0o600)).map_err(
            |e| match e {
                Errno::LOOP => self.refused(id, "it is a link: remove it"),
                e => self.failed(id, e),
            },
        )?;
        let facts = fs::fstat(&file).map_err(|e| self.failed(id, e))?;
        if facts.st_uid != rustix::process::geteuid().as_raw()
            || facts.st_mode & libc::S_IFMT != libc::S_IFREG
        {
            return Err(
                self.refused(id, "it is not a file of this user's: quell did not write it, remove it")
            );
        }
        Ok(File::from(file))
    }

    /// Syncs the folder, so that names in it survive a power failure.
    fn sync(&self, id: &str) -> Result<(), StoreError> {
        fs::fsync(&self.folder).map_err(|e| self.failed(id, e))
    }

    fn failed(&self, id: &str, error: Errno) -> StoreError {
        StoreError::Io {
            path: if id.is_empty() { self.path.clone() } else { self.path_of(id) },
            source: error.into(),
        }
    }

    fn refused(&self, id: &str, reason: &str) -> StoreError {
        StoreError::Unsafe { path: self.path_of(id), reason: reason.into() }
    }
}

impl Lock {
    /// Takes the machine's lock.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another quell has it.
    pub fn take(root: &Root) -> Result<Self, StoreError> {
        let (folder, path) = private_folder(root, &JOURNALS, true)?;
        exclusive(&folder, &path)?;
        let file = match in_run(root) {
            Ok(file) => Some(file),
            // A full or read-only /run must not prevent a revert; the lock on the journals' folder is held.
            Err(StoreError::Io { source, .. }) if no_room(&source) => None,
            Err(error) => return Err(error),
        };
        Ok(Self { _folder: folder, _file: file })
    }
}

/// The lock at the path where other programs expect it.
fn in_run(root: &Root) -> Result<OwnedFd, StoreError> {
    let (folder, path) = private_folder(root, &LOCKS, true)?;
    let path = path.join("tune.lock");
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = fs::openat(&folder, "tune.lock", flags, Mode::from(0o600)).map_err(|e| match e {
        Errno::LOOP => StoreError::Unsafe { path: path.clone(), reason: "it is a link: remove it".into() },
        e => StoreError::Io { path: path.clone(), source: e.into() },
    })?;
    exclusive(&file, &path)?;
    Ok(file)
}

fn exclusive(file: &OwnedFd, path: &Path) -> Result<(), StoreError> {
    match fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(StoreError::Locked(path.to_owned())),
        Err(e) => Err(StoreError::Io { path: path.to_owned(), source: e.into() }),
    }
}

fn no_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::QuotaExceeded
    )
}

fn file_name(id: &str) -> String {
    format!("{id}{JOURNAL}")
}

enum Step {
    Io(Errno),
    Unsafe(String),
}

/// Opens a folder step by step from the root. Its last two parts belong to quell alone.
fn private_folder(root: &Root, parts: &[&str], make: bool) -> Result<(OwnedFd, PathBuf), StoreError> {
    let ours = parts.iter().position(|part| *part == "quell").unwrap_or(0);
    let (theirs, ours) = parts.split_at(ours);
    let mut path = root.path(&theirs.join("/"));
    if make && !root.is_system() {
        fs_err::create_dir_all(&path).map_err(|source| StoreError::Io { path: path.clone(), source })?;
    }
    if !path.canonicalize().unwrap_or_default().starts_with(root.path("/")) {
        let source = io::Error::from(io::ErrorKind::NotFound);
        return Err(StoreError::Io { path, source });
    }
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let failed = |path: &PathBuf, e: Errno| StoreError::Io { path: path.clone(), source: e.into() };
    let mut folder = fs::open(&path, flags, Mode::empty()).map_err(|e| failed(&path, e))?;
    for part in ours {
        path.push(part);
        folder = step_into(folder.as_fd(), part, make, *part != "quell").map_err(|reason| match reason {
            Step::Io(e) => failed(&path, e),
            Step::Unsafe(reason) => StoreError::Unsafe { path: path.clone(), reason },
        })?;
    }
    Ok((folder, path))
}

fn step_into(folder: impl AsFd, name: &str, make: bool, closed_to_others: bool) -> Result<OwnedFd, Step> {
    if make {
        match fs::mkdirat(&folder, name, Mode::from(0o700)) {
            // Without this a power failure could remove the folder, and the journal in it.
            Ok(()) => fs::fsync(&folder).map_err(Step::Io)?,
            Err(Errno::EXIST) => {}
            Err(e) => return Err(Step::Io(e)),
        }
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inner = fs::openat(&folder, name, flags, Mode::empty()).map_err(|e| match e {
        Errno::LOOP | Errno::NOTDIR => {
            Step::Unsafe("it is a link or a file where a folder must be: remove it".into())
        }
        e => Step::Io(e),
    })?;
    let facts = fs::fstat(&inner).map_err(Step::Io)?;
    // `/run/quell` and `/var/lib/quell` may contain other things that other users read, but no other user may write there.
    let too_open = if closed_to_others { 0o077 } else { 0o022 };
    let me = rustix::process::geteuid().as_raw();
    if facts.st_uid != me || facts.st_mode & too_open != 0 {
        let reason = "it belongs to another user, or others may enter it: `chown` it to this user and `chmod 0700` it, or remove it";
        return Err(if make { Step::Unsafe(reason.into()) } else { Step::Io(Errno::ACCESS) });
    }
    Ok(inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn tree() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path()).unwrap();
        (folder, root)
    }

    #[test]
    fn folders_are_made_for_the_owner_alone() {
        let (folder, root) = tree();
        let store = Store::open(&root).unwrap();
        store.create("a").unwrap();
        assert!(store.ids().unwrap().is_empty(), "it has no record");
        store.publish("a").unwrap();
        for part in ["quell", "quell/tune"] {
            let mode = folder.path().join("var/lib").join(part).metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{part}");
        }
        assert_eq!(store.ids().unwrap(), ["a"]);
        store.close("a").unwrap();
        assert!(store.ids().unwrap().is_empty());
        assert_eq!(store.last_closed().unwrap().unwrap().0, "a");
    }

    #[test]
    fn a_journal_without_a_record_is_removed() {
        let (_folder, root) = tree();
        let store = Store::open(&root).unwrap();
        for id in ["a", "b", "c"] {
            store.create(id).unwrap();
        }
        assert_eq!(store.names_in(store.folder.as_fd(), BEGUN).unwrap(), ["c"]);
        store.discard("c");
        assert!(store.names_in(store.folder.as_fd(), BEGUN).unwrap().is_empty());
    }

    /// Ids are by the beginning: what began first may end last.
    #[test]
    fn the_journal_that_was_closed_last_is_kept() {
        let (_folder, root) = tree();
        let store = Store::open(&root).unwrap();
        let close = |id: &str, seconds: u64| {
            let file = store.create(id).unwrap();
            store.publish(id).unwrap();
            let end = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            file.set_modified(end).unwrap();
            store.close(id).unwrap();
        };
        (1..=KEPT as u64 + 1).for_each(|n| close(&format!("b{n:02}"), n));
        close("a", 1_000);
        assert_eq!(store.last_closed().unwrap().map(|(id, _)| id).as_deref(), Some("a"));
        assert_eq!(store.ids_by_end(store.closed(false).unwrap().as_fd()).unwrap().len(), KEPT);
    }

    #[test]
    fn links_and_open_folders_are_refused() {
        let (folder, root) = tree();
        let elsewhere = folder.path().join("elsewhere");
        fs_err::create_dir_all(folder.path().join("var/lib/quell")).unwrap();
        fs_err::set_permissions(folder.path().join("var/lib/quell"), std::fs::Permissions::from_mode(0o700))
            .unwrap();
        fs_err::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, folder.path().join("var/lib/quell/tune")).unwrap();
        assert!(matches!(Store::open(&root), Err(StoreError::Unsafe { .. })));
        fs_err::remove_file(folder.path().join("var/lib/quell/tune")).unwrap();
        let store = Store::open(&root).unwrap();
        symlink("/etc/passwd", store.path_of("x")).unwrap();
        assert!(matches!(store.read("x"), Err(StoreError::Unsafe { .. })));
        assert!(matches!(store.append("x"), Err(StoreError::Unsafe { .. })));
        fs_err::set_permissions(store.path.clone(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(Store::open(&root), Err(StoreError::Unsafe { .. })));
    }

    #[test]
    fn one_lock_for_a_machine() {
        let (_folder, root) = tree();
        let lock = Lock::take(&root).unwrap();
        assert!(matches!(Lock::take(&root), Err(StoreError::Locked(_))));
        drop(lock);
        Lock::take(&root).unwrap();
    }

    #[test]
    fn a_lock_that_is_a_link_is_refused() {
        let (folder, root) = tree();
        drop(Lock::take(&root).unwrap());
        let path = folder.path().join("run/quell/tune.lock");
        fs_err::remove_file(&path).unwrap();
        symlink("/etc/passwd", &path).unwrap();
        assert!(matches!(Lock::take(&root), Err(StoreError::Unsafe { .. })));
    }
}
