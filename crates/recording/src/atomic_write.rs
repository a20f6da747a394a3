//! Files that exist whole or not at all: written under another name in the same folder, synced, renamed.

use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fs_err as fs;
use tempfile::{Builder, NamedTempFile};

/// A draft is named `.NAME.RANDOM.draft`, so that no reader of the folder takes it for a file.
const DRAFT: &str = ".draft";
const RANDOM: usize = 6;

/// A file that takes its name when it is complete ([`AtomicFile::commit`]).
///
/// Whoever opens that name finds the old file or all of the new one, even after a crash. A file that is dropped without a
/// commit leaves the old file as it was, and nothing else; if its process is killed, it leaves a draft ([`remove_drafts`]). The
/// new file has the mode that the umask gives to any new file, whatever the old one had; a link of that name is replaced.
#[derive(Debug)]
pub struct AtomicFile {
    draft: NamedTempFile<std::fs::File>,
    path: PathBuf,
}

impl AtomicFile {
    /// Begins a file.
    ///
    /// # Errors
    /// When its folder does not accept a file. Errors of this type name the path, and what to do.
    pub fn create(path: &Path) -> io::Result<Self> {
        let failed = |cause| not_written(path, cause);
        let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let draft = Builder::new()
            .prefix(&prefix)
            .suffix(DRAFT)
            .rand_bytes(RANDOM)
            // `tempfile` itself would open the file with access for its owner only.
            .make_in(folder.unwrap_or(Path::new(".")), |draft| std::fs::File::create_new(draft))
            .map_err(failed)?;
        Ok(Self { draft, path: path.to_owned() })
    }

    /// The file itself, for its mode and the like.
    pub fn as_file(&self) -> &std::fs::File {
        self.draft.as_file()
    }

    /// Moves the file to its place and replaces what is there.
    ///
    /// # Errors
    /// When the disk or the folder does not accept it.
    pub fn commit(self) -> io::Result<()> {
        let Self { draft, path } = self;
        let synced = draft.as_file().sync_all();
        let named = synced.and_then(|()| draft.persist(&path).map(drop).map_err(|error| error.error));
        named.map_err(|cause| not_written(&path, cause))
    }

    /// Moves the file to its place if there is none.
    ///
    /// # Errors
    /// As [`Self::commit`]; of the kind [`io::ErrorKind::AlreadyExists`] if there is a file.
    pub fn commit_new(self) -> io::Result<()> {
        let Self { draft, path } = self;
        let synced = draft.as_file().sync_all();
        let named =
            synced.and_then(|()| draft.persist_noclobber(&path).map(drop).map_err(|error| error.error));
        named.map_err(|cause| not_written(&path, cause))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.draft.as_file_mut().write(bytes).map_err(|cause| not_written(&self.path, cause))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Replaces the content of `path` by `bytes`, as [`AtomicFile`] does.
///
/// # Errors
/// Those of [`AtomicFile`].
pub fn atomic_write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes)?;
    file.commit()
}

/// Writes the output of a command to where its reader expects it: as an [`AtomicFile`], except for a device, a pipe, or the target of a
/// link, which must not be replaced. A link of another user is refused, who could make root overwrite any file.
///
/// # Errors
/// Those of `make`, and those of the file, which name it.
pub fn write_output(output: &Path, make: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let there = output.symlink_metadata().ok();
    let trusted = |owner: u32| owner == 0 || owner == rustix::process::geteuid().as_raw();
    if let Some(owner) = there.as_ref().filter(|facts| facts.is_symlink()).map(MetadataExt::uid)
        && !trusted(owner)
    {
        let why = format!("it is a link that user {owner} made");
        return Err(not_written(output, io::Error::other(why)));
    }
    if there.is_some_and(|facts| !facts.is_file()) {
        // Truncates, so that no tail of a longer old file remains.
        let file = fs::OpenOptions::new().write(true).truncate(true).open(output)?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        make(&mut file)?;
        return file.flush();
    }
    let mut file = AtomicFile::create(output)?;
    let mut buffered = BufWriter::with_capacity(1 << 20, &mut file);
    make(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    file.commit()
}

/// The name of the file for which this one is a draft, if it is a draft.
pub fn drafted(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?.strip_prefix('.')?.strip_suffix(DRAFT)?;
    let (name, random) = name.rsplit_once('.')?;
    (random.len() == RANDOM).then_some(name)
}

/// Removes the drafts of `path` that killed processes left. No process may be writing it.
///
/// # Errors
/// When its folder cannot be read, or a draft cannot be removed.
pub fn remove_drafts(path: &Path) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Ok(());
    };
    for entry in fs::read_dir(folder)? {
        let entry = entry?.path();
        if drafted(&entry) == Some(name) {
            fs::remove_file(entry)?;
        }
    }
    Ok(())
}

/// The OS error number, also of the error that [`AtomicFile`] wraps.
pub fn os_error(error: &io::Error) -> Option<i32> {
    let beneath = || error.get_ref()?.downcast_ref::<NotWritten>()?.cause.raw_os_error();
    error.raw_os_error().or_else(beneath)
}

#[derive(Debug, thiserror::Error)]
#[error("failed to write {}: {cause}; {}", path.display(), next_step(cause))]
struct NotWritten {
    path: PathBuf,
    cause: io::Error,
}

fn not_written(path: &Path, cause: io::Error) -> io::Error {
    io::Error::new(cause.kind(), NotWritten { path: path.to_owned(), cause })
}

fn next_step(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "make its folder first",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "name a folder that you may write to"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "make room there, or name another place"
        }
        io::ErrorKind::AlreadyExists | io::ErrorKind::IsADirectory => "choose another name",
        _ => "name another place",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_is_replaced_and_its_mode_is_that_of_any_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, plain) = (folder.path().join("f"), folder.path().join("plain"));
        fs::write(&plain, "").unwrap();
        atomic_write(&path, b"old").unwrap();
        assert_eq!(mode(&path), mode(&plain));
        fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
        atomic_write(&path, b"new").unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"new".to_vec(), mode(&plain)));
        assert_eq!(names(folder.path()), ["f", "plain"]);
    }

    #[test]
    fn a_link_of_another_user_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("f"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        symlink(&path, &link).unwrap();
        write_output(&link, |out| out.write_all(b"own")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"own");
        // Only root can give it away.
        if std::os::unix::fs::lchown(&link, Some(12_345), None).is_ok() {
            let error = write_output(&link, |out| out.write_all(b"new")).unwrap_err();
            assert!(error.to_string().contains("a link that user 12345 made; name another"), "{error}");
            assert_eq!(fs::read(&path).unwrap(), b"own");
        }
    }

    #[test]
    fn until_it_is_complete_the_old_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        let draft = folder.path().join(&names(folder.path())[0]);
        assert_eq!((fs::read(&path).unwrap(), drafted(&draft)), (b"old".to_vec(), Some("f")));
        drop(file);
        let failed = write_output(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("no more"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no more");
        assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (b"old".to_vec(), vec!["f".to_owned()]));
    }

    #[test]
    fn what_cannot_be_put_in_its_place_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::create_dir_all(path.join("full")).unwrap();
        let error = atomic_write(&path, b"new").unwrap_err();
        assert!(error.to_string().starts_with(&format!("failed to write {}: ", path.display())), "{error}");
        assert_eq!(os_error(&error), Some(21), "EISDIR: {error}");
        assert_eq!((names(folder.path()), names(&path)), (vec!["f".to_owned()], vec!["full".to_owned()]));
        let missing = atomic_write(&folder.path().join("no/f"), b"").unwrap_err();
        assert!(missing.to_string().ends_with("make its folder first"), "{missing}");
        assert!(AtomicFile::create(Path::new("/")).is_err() && AtomicFile::create(Path::new("")).is_err());
    }

    #[test]
    fn a_new_one_does_not_take_the_place_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        AtomicFile::create(&path).unwrap().commit_new().unwrap();
        fs::write(&path, "old").unwrap();
        let error = AtomicFile::create(&path).unwrap().commit_new().unwrap_err();
        assert_eq!(
            (error.kind(), names(folder.path())),
            (io::ErrorKind::AlreadyExists, vec!["f".to_owned()])
        );
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[test]
    fn links_are_replaced_and_outputs_go_where_they_lead() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "a longer text").unwrap();
        symlink("target", &link).unwrap();
        write_output(&link, |out| out.write_all(b"short")).unwrap();
        assert_eq!((fs::read(&target).unwrap(), link.is_symlink()), (b"short".to_vec(), true));
        write_output(Path::new("/dev/null"), |out| out.write_all(b"gone")).unwrap();
        assert!(!Path::new("/dev/null").is_file());
        atomic_write(&link, b"own").unwrap();
        assert_eq!((fs::read(&target).unwrap(), link.is_symlink()), (b"short".to_vec(), false));
    }

    #[test]
    fn drafts_of_killed_processes_go_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".f.abc123.draft", ".g.abc123.draft", ".f.draft", "f.abc123.draft", "f"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        remove_drafts(&folder.path().join("f")).unwrap();
        assert_eq!(names(folder.path()), [".f.draft", ".g.abc123.draft", "f", "f.abc123.draft"]);
    }
}
