//! Finds the site's MPI: a compiler wrapper, and the launcher that belongs to it.

use std::ffi::OsStr;
use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::command_line::launcher_by_name;
use super::{MpiError, last_words};

/// A question for the preprocessor: only mpi.h itself identifies its MPI.
const QUESTION: &str = "#include <mpi.h>\n#if defined(OMPI_MAJOR_VERSION)\nquell_answer openmpi OMPI_MAJOR_VERSION OMPI_MINOR_VERSION \
                        OMPI_RELEASE_VERSION\n#elif defined(MPICH_VERSION)\nquell_answer mpich MPICH_VERSION\n#else\nquell_answer \
                        other\n#endif\n";

/// Which MPI and launcher the user requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MpiSelection {
    /// `openmpi`, `mpich`, or the path of a compiler wrapper; `None` for `mpicc` from PATH.
    pub mpi: Option<String>,
    /// Name or path of a launcher; `None` for the one that belongs to the wrapper.
    pub launcher: Option<String>,
}

/// The family of an MPI, as far as it changes how programs are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Open MPI and its descendants.
    OpenMpi,
    /// MPICH and its descendants: Intel MPI, MVAPICH, Cray MPICH.
    Mpich,
    /// Any other.
    Other,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
            Self::Other => "this MPI",
        })
    }
}

/// Which command-line syntax a launcher has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// Open MPI's mpirun of this major version.
    OpenMpi(u32),
    /// Hydra: the mpiexec of MPICH and its descendants.
    Hydra,
    /// Slurm's srun.
    Srun,
    /// Any other; it gets `-n N` and nothing else.
    Other,
}

/// A compiler wrapper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrapper {
    /// Its path.
    pub compiler: PathBuf,
    /// Its MPI family.
    pub family: Family,
    /// Version from its header; empty if the header has none.
    pub version: String,
}

/// A usable MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mpi {
    /// The compiler wrapper.
    pub compiler: PathBuf,
    /// Its family.
    pub family: Family,
    /// Version from its header; empty if the header has none.
    pub version: String,
    /// The launcher.
    pub launcher: PathBuf,
    /// The launcher's syntax.
    pub kind: Launcher,
}

/// Finds the requested MPI and launcher.
///
/// # Errors
/// [`MpiError::NoCompiler`], [`MpiError::Compiler`] or [`MpiError::NoLauncher`], each with what to do.
pub fn find(selection: &MpiSelection) -> Result<Mpi, MpiError> {
    let Wrapper { compiler, family, version } = wrapper(selection.mpi.as_deref())?;
    let (launcher, kind) = launcher(selection, &compiler, family)?;
    Ok(Mpi { compiler, family, version, launcher, kind })
}

impl Mpi {
    /// The compiler wrapper.
    pub fn wrapper(&self) -> Wrapper {
        Wrapper { compiler: self.compiler.clone(), family: self.family, version: self.version.clone() }
    }
}

/// Finds a wrapper by a name as in [`MpiSelection::mpi`].
///
/// # Errors
/// [`MpiError::NoCompiler`] or [`MpiError::Compiler`].
pub fn wrapper(selection: Option<&str>) -> Result<Wrapper, MpiError> {
    let compiler = compiler(selection)?;
    let (family, version) = identify(&compiler)?;
    Ok(Wrapper { compiler, family, version })
}

fn compiler(selection: Option<&str>) -> Result<PathBuf, MpiError> {
    let names: Vec<String> = match selection {
        None => match std::env::var("MPICC") {
            Ok(name) if !name.is_empty() => vec![name],
            _ => ["mpicc", "mpicc.openmpi", "mpicc.mpich"].map(str::to_owned).to_vec(),
        },
        Some(path) if path.contains('/') => vec![path.to_owned()],
        Some(name) => vec![format!("mpicc.{name}"), name.to_owned()],
    };
    let found = names.iter().find_map(|name| in_path(name));
    let found = found.ok_or_else(|| MpiError::NoCompiler { looked_for: names.join(" or ") })?;
    // Absolute, because it also runs from other folders. Symbolic links are kept: wrappers behave according to their own name.
    Ok(std::path::absolute(found)?)
}

/// Finds an executable by its name or path.
pub(super) fn in_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return is_program(Path::new(name)).then(|| PathBuf::from(name));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

fn identify(compiler: &Path) -> Result<(Family, String), MpiError> {
    let broken = |printed: String| MpiError::Compiler { compiler: compiler.to_owned(), printed };
    let mut child = Command::new(compiler)
        .args(["-E", "-P", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| broken(e.to_string()))?;
    if let Some(mut input) = child.stdin.take() {
        // A wrapper that does not read its input reports its own reason.
        let _ = input.write_all(QUESTION.as_bytes());
    }
    let output = child.wait_with_output().map_err(|e| broken(e.to_string()))?;
    if !output.status.success() {
        return Err(broken(last_words(&String::from_utf8_lossy(&output.stderr))));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let answer = text.lines().rev().find_map(|line| line.trim().strip_prefix("quell_answer "));
    answer.map(family_of).ok_or_else(|| broken("its mpi.h cannot be read".into()))
}

fn family_of(answer: &str) -> (Family, String) {
    let mut words = answer.split_whitespace();
    match words.next() {
        Some("openmpi") => (Family::OpenMpi, words.collect::<Vec<_>>().join(".")),
        Some("mpich") => (Family::Mpich, words.collect::<String>().replace('"', "")),
        _ => (Family::Other, String::new()),
    }
}

fn launcher(
    selection: &MpiSelection,
    compiler: &Path,
    family: Family,
) -> Result<(PathBuf, Launcher), MpiError> {
    let names = match &selection.launcher {
        Some(name) => vec![name.clone()],
        None => candidates(compiler),
    };
    let fits = |kind: Launcher| match (kind, family) {
        (Launcher::OpenMpi(_), family) => family == Family::OpenMpi,
        (Launcher::Hydra, family) => family == Family::Mpich,
        (Launcher::Srun | Launcher::Other, _) => true,
    };
    let mut tried = Vec::new();
    for name in &names {
        let Some(path) = in_path(name) else {
            tried.push(name.clone());
            continue;
        };
        match kind_of(&path) {
            Some(kind) if fits(kind) => return Ok((path, kind)),
            Some(_) => tried.push(format!("{name} (of another MPI)")),
            None => tried.push(format!("{name} (it does not run)")),
        }
    }
    Err(MpiError::NoLauncher { family, compiler: compiler.to_owned(), tried: tried.join(", ") })
}

/// Launchers next to the wrapper, with its suffix where several MPIs share a folder, as on Debian; then those in PATH; then Slurm's.
fn candidates(compiler: &Path) -> Vec<String> {
    let real = std::fs::canonicalize(compiler).unwrap_or_else(|_| compiler.to_owned());
    let mut names = Vec::new();
    for wrapper in [&real, compiler] {
        let name = wrapper.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let suffix = name.strip_prefix("mpicc").unwrap_or_default();
        for program in ["mpirun", "mpiexec"] {
            let sibling = wrapper.with_file_name(format!("{program}{suffix}"));
            names.push(sibling.to_string_lossy().into_owned());
        }
    }
    names.extend(["mpirun", "mpiexec", "srun"].map(str::to_owned));
    names.dedup();
    names
}

/// The syntax of the launcher with this name: by the name if only one has it, or else by what the launcher says of itself.
pub fn launcher_of(name: &str) -> Launcher {
    let by_itself = || in_path(name).and_then(|path| kind_of(&path)).unwrap_or(Launcher::Other);
    launcher_by_name(name).unwrap_or_else(by_itself)
}

pub(super) fn kind_of(launcher: &Path) -> Option<Launcher> {
    let output = Command::new(launcher).arg("--version").stdin(Stdio::null()).output().ok()?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text += &String::from_utf8_lossy(&output.stderr);
    Some(kind_by_words(&text))
}

fn kind_by_words(version: &str) -> Launcher {
    let words = version.to_lowercase();
    let number_after = |mark: &str| {
        let rest = &words[words.find(mark)? + mark.len()..];
        let digits: String =
            rest.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    if words.starts_with("slurm") {
        Launcher::Srun
    } else if words.contains("hydra") || words.contains("intel(r) mpi") {
        Launcher::Hydra
    } else if words.contains("prrte") || words.contains("prterun") {
        // Open MPI's launcher, from version 5 on.
        Launcher::OpenMpi(number_after("open mpi").unwrap_or(5))
    } else if words.contains("open mpi") || words.contains("openrte") {
        Launcher::OpenMpi(number_after("open mpi").or_else(|| number_after("openrte")).unwrap_or(4))
    } else {
        Launcher::Other
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn headers_tell_whose_they_are() {
        assert_eq!(family_of("openmpi 4 1 4"), (Family::OpenMpi, "4.1.4".into()));
        assert_eq!(family_of("mpich \"4.0.2\""), (Family::Mpich, "4.0.2".into()));
        assert_eq!(family_of("other").0, Family::Other);
    }

    #[test]
    fn launchers_tell_how_they_are_spoken_to() {
        assert_eq!(kind_by_words("mpirun.openmpi (OpenRTE) 4.1.4\n"), Launcher::OpenMpi(4));
        assert_eq!(kind_by_words("mpirun (Open MPI) 5.0.11\n"), Launcher::OpenMpi(5));
        assert_eq!(kind_by_words("HYDRA build details:\n    Version: 4.0.2\n"), Launcher::Hydra);
        assert_eq!(kind_by_words("slurm-wlm 22.05.8\n"), Launcher::Srun);
        assert_eq!(kind_by_words("something else\n"), Launcher::Other);
    }

    #[test]
    fn what_is_missing_or_broken_is_named() {
        let selection = |mpi: &str| MpiSelection { mpi: Some(mpi.into()), launcher: None };
        assert!(matches!(find(&selection("no-such-mpi")), Err(MpiError::NoCompiler { .. })));
        assert!(matches!(find(&selection("/bin/false")), Err(MpiError::Compiler { .. })));
        let error = find(&selection("/bin/true")).unwrap_err().to_string();
        assert!(error.contains("mpi.h cannot be read"), "{error}");
    }
}
