//! A site's files, which decide what root writes.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{self, Dir, Mode, OFlags, Stat};

use super::CatalogueError;

/// Maximum size of a file.
const LARGEST: u64 = 1 << 20;

/// The files `*.toml` of a folder and their texts, by name. A folder that does not exist has none.
///
/// What is checked is what is read, because both are done on one open file. A link, such as those of tools that manage configurations, stands for
/// its target: only root can make one in a folder of root's.
///
/// # Errors
/// The first file that cannot be read, or that users other than root can write (or exchange, in a folder that they can write) if root reads it.
pub(crate) fn read_site(folder: &Path) -> Result<Vec<(PathBuf, String)>, CatalogueError> {
    let failed = |file: &Path, reason: String| CatalogueError { file: file.to_owned(), reason };
    let opened = match fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened.map_err(|e| failed(folder, io::Error::from(e).to_string()))?,
    };
    let names = checked_names(&opened).map_err(|reason| failed(folder, reason))?;
    let files = names.into_iter().map(|name| {
        let file = folder.join(&name);
        let text = read_checked(&opened, &name).map_err(|reason| failed(&file, reason))?;
        Ok((file, text))
    });
    files.collect()
}

fn checked_names(folder: &OwnedFd) -> Result<Vec<PathBuf>, String> {
    let read = || -> io::Result<(Stat, Vec<PathBuf>)> {
        let mut names = Vec::new();
        for entry in Dir::read_from(folder)? {
            names.push(PathBuf::from(OsStr::from_bytes(entry?.file_name().to_bytes())));
        }
        names.retain(|name| name.extension().is_some_and(|extension| extension == "toml"));
        names.sort();
        Ok((fs::fstat(folder)?, names))
    };
    let (facts, names) = read().map_err(|e| e.to_string())?;
    if !names.is_empty() {
        refuse_others(&facts)?;
    }
    Ok(names)
}

fn read_checked(folder: &OwnedFd, name: &Path) -> Result<String, String> {
    // Non-blocking, because a pipe would block the open.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = fs::openat(folder, name, flags, Mode::empty());
    let opened = opened.map_err(|e| io::Error::from(e).to_string())?;
    let facts = fs::fstat(&opened).map_err(|e| io::Error::from(e).to_string())?;
    let mut text = String::new();
    let is_file = facts.st_mode & libc::S_IFMT == libc::S_IFREG;
    if is_file {
        refuse_others(&facts)?;
        File::from(opened).take(LARGEST + 1).read_to_string(&mut text).map_err(|e| e.to_string())?;
    }
    if !is_file || text.len() as u64 > LARGEST {
        return Err(format!("it is not a file of at most {LARGEST} bytes"));
    }
    Ok(text)
}

fn refuse_others(facts: &Stat) -> Result<(), String> {
    if rustix::process::geteuid().is_root() && (facts.st_uid != 0 || facts.st_mode & 0o022 != 0) {
        return Err("users other than root may write it: `chown root` it and `chmod go-w` it".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn chmod(path: &Path, mode: u32) {
        fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn files_are_read_by_name_also_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let site = folder.path().join("site");
        assert_eq!(read_site(&site).unwrap(), []);
        fs_err::create_dir(&site).unwrap();
        for (name, text) in [("site/b.toml", "2"), ("site/x.txt", "x"), ("elsewhere", "1")] {
            fs_err::write(folder.path().join(name), text).unwrap();
        }
        symlink("../elsewhere", site.join("a.toml")).unwrap();
        let read = read_site(&site).unwrap();
        assert_eq!(read, [(site.join("a.toml"), "1".into()), (site.join("b.toml"), "2".into())]);
        for (bad, reason) in [("c", "not a file"), ("d", "No such file"), ("e", "not a file")] {
            let bad = site.join(bad).with_extension("toml");
            match bad.file_stem().unwrap().to_str().unwrap() {
                "c" => fs_err::create_dir(&bad).unwrap(),
                "d" => symlink("nowhere", &bad).unwrap(),
                _ => fs_err::write(&bad, vec![b'#'; LARGEST as usize + 1]).unwrap(),
            }
            let error = read_site(&site).unwrap_err();
            assert!(error.file == bad && error.reason.contains(reason), "{error}");
            if bad.is_dir() { fs_err::remove_dir(&bad).unwrap() } else { fs_err::remove_file(&bad).unwrap() }
        }
    }

    #[test]
    fn root_reads_nothing_that_others_can_write_or_exchange() {
        let folder = tempfile::tempdir().unwrap();
        let (site, file) = (folder.path().join("site"), folder.path().join("site/a.toml"));
        fs_err::create_dir(&site).unwrap();
        fs_err::write(&file, "1").unwrap();
        let is_refused = || match read_site(&site) {
            Ok(_) => None,
            Err(error) => Some(error.file).filter(|_| error.reason.contains("users other than root")),
        };
        let root = rustix::process::geteuid().is_root();
        for (of_folder, of_file, refused) in
            [(0o755, 0o644, None), (0o777, 0o644, Some(&site)), (0o755, 0o664, Some(&file))]
        {
            chmod(&site, of_folder);
            chmod(&file, of_file);
            assert_eq!(is_refused().as_ref(), refused.filter(|_| root), "{of_folder:o} {of_file:o}");
        }
    }
}
