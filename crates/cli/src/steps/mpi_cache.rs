//! The folder that keeps what quell builds for the site's MPI.

use std::path::{Path, PathBuf};

/// The folder. Every node must see it, as is usual for home directories.
///
/// # Errors
/// If there is no writable folder that belongs to this user alone.
pub fn mpi_cache() -> anyhow::Result<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let configured = of("QUELL_CACHE").or_else(|| of("XDG_CACHE_HOME").map(|folder| folder.join("quell")));
    let home = of("HOME").map(|home| home.join(".cache/quell"));
    let tried = configured.into_iter().chain(home).map(|folder| folder.join("mpi"));
    for folder in tried {
        if private(&folder).is_ok() && is_ours(&folder) {
            return Ok(fs_err::canonicalize(folder)?);
        }
    }
    // For a user without a home, such as `nobody`: a folder per user, because others share the machine.
    let folder = std::env::temp_dir().join(format!("quell-mpi-{}", rustix::process::geteuid().as_raw()));
    private(&folder)?;
    anyhow::ensure!(
        is_ours(&folder),
        "nothing can be built for an MPI: {} is not writable; set QUELL_CACHE to a folder that every node sees",
        folder.display()
    );
    Ok(fs_err::canonicalize(folder)?)
}

/// Creates a folder that only this user can change.
fn private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Whether only this user can write to the folder: quell runs programs from it, which must not be someone else's.
fn is_ours(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let me = rustix::process::geteuid().as_raw();
    folder
        .symlink_metadata()
        .is_ok_and(|facts| facts.is_dir() && facts.uid() == me && facts.mode() & 0o022 == 0)
        && fs_err::write(folder.join(".writable"), "").is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::{is_ours, private};

    #[test]
    fn a_cache_that_others_can_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/mpi");
        private(&folder).unwrap();
        assert!(is_ours(&folder) && !is_ours(&dir.path().join("none")));
        symlink(&folder, dir.path().join("link")).unwrap();
        assert!(!is_ours(&dir.path().join("link")));
        for mode in [0o770, 0o707] {
            fs_err::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
            assert!(!is_ours(&folder), "{mode:o}");
        }
        fs_err::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert!(is_ours(&folder));
        // Only root can give it away.
        if chown(&folder, Some(12_345), None).is_ok() {
            assert!(!is_ours(&folder));
        }
    }
}
