//! Which MPI a command uses: the one that its program links, or else its launcher's.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use fs_err as fs;

use super::find::{in_path, kind_of};
use super::{Family, Launcher, MpiError, Wrapper, is_launcher, wrapper};

/// A program that is linked with an MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linked {
    /// The program.
    pub program: PathBuf,
    /// The MPI's library, as the dynamic linker finds it; only its name if the linker does not find it.
    pub library: PathBuf,
}

/// The MPI of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// Its compiler wrapper.
    pub wrapper: Wrapper,
    /// The program that shows which MPI it is.
    pub linked: Option<Linked>,
    /// The reasons why a library cannot be loaded into a program of the command.
    pub doubts: Vec<String>,
}

/// Finds the MPI of a command, or the requested one.
///
/// # Errors
/// [`MpiError::NoWrapper`], [`MpiError::NoCompiler`] or [`MpiError::Compiler`], each with what to do.
pub fn used_by(command: &[String], selection: Option<&str>) -> Result<Used, MpiError> {
    let mut programs: Vec<PathBuf> = Vec::new();
    // A script passed to a shell is one word, so each word is split.
    for word in command.iter().flat_map(|word| word.split_whitespace()) {
        programs.extend(elf(word).filter(|program| !programs.contains(program)));
    }
    let asked: Vec<_> = programs.iter().map(|program| (program, libraries(program))).collect();
    let linked = asked.iter().find_map(|(program, answer)| linked(program, answer.as_ref()?));
    let doubts = asked.iter().filter_map(|(program, answer)| doubt(program, answer.as_ref())).collect();
    let wrapper = match (selection, &linked) {
        (Some(_), _) => wrapper(selection)?,
        (None, Some(linked)) => wrapper_from_library(&linked.library)?,
        (None, None) => match programs.iter().find_map(|program| launcher_family(program)) {
            Some(family) => first_of(family, "the launcher".into(), Vec::new())?,
            None => wrapper(None)?,
        },
    };
    Ok(Used { wrapper, linked, doubts })
}

/// The compiled program that a word names, if it names one.
fn elf(word: &str) -> Option<PathBuf> {
    if word.starts_with('-') {
        return None;
    }
    // Launchers also search their own working directory, which is this one.
    let path = in_path(word).or_else(|| in_path(&format!("./{word}")))?;
    let mut start = [0; 4];
    fs::File::open(&path).ok()?.read_exact(&mut start).ok()?;
    (start == *b"\x7fELF").then_some(path)
}

/// Asks for the libraries that the dynamic linker would load for a program. It fails for a program that loads none. `None` without `ldd`.
fn libraries(program: &Path) -> Option<Output> {
    Command::new("ldd").arg(program).stdin(Stdio::null()).output().ok()
}

fn linked(program: &Path, libraries: &Output) -> Option<Linked> {
    let listed = libraries.status.success().then(|| String::from_utf8_lossy(&libraries.stdout))?;
    let library = mpi_among(&listed)?;
    Some(Linked { program: program.to_owned(), library })
}

fn mpi_among(libraries: &str) -> Option<PathBuf> {
    const NAMES: [&str; 7] = [
        "libmpi.so",
        "libmpich",
        "libmpifort.so",
        "libmpi_cray.so",
        "libmpi_gnu",
        "libmpi_ibm.so",
        "libmpi_abi.so",
    ];
    libraries.lines().find_map(|line| {
        let (name, rest) = line.trim().split_once(" => ")?;
        let path = rest.split_once(" (").map_or(rest, |(path, _)| path);
        let known = NAMES.iter().any(|mpi| name.starts_with(mpi));
        known.then(|| PathBuf::from(if path.starts_with('/') { path } else { name }))
    })
}

/// The reason why no library can be loaded into a program, if there is one.
fn doubt(program: &Path, libraries: Option<&Output>) -> Option<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let shown = program.display();
    let mode = program.metadata().map(|facts| facts.permissions().mode()).unwrap_or(0);
    if mode & 0o6000 != 0 {
        return Some(format!("{shown} runs as another user or group (setuid, setgid)"));
    }
    (!libraries?.status.success()).then(|| format!("{shown} is linked statically"))
}

/// The family of a library, by its name: libmpi.so.12 is the name of Intel MPI's and MVAPICH's.
fn family_of(library: &Path) -> Family {
    let name = library.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if name.starts_with("libmpi_abi") {
        Family::Other
    } else if name.starts_with("libmpi_ibm") || (name.starts_with("libmpi.so") && name != "libmpi.so.12") {
        Family::OpenMpi
    } else {
        Family::Mpich
    }
}

fn wrapper_from_library(library: &Path) -> Result<Wrapper, MpiError> {
    let real = fs::canonicalize(library).unwrap_or_else(|_| library.to_owned());
    let prefixes = [library, &real].into_iter().filter_map(|path| path.parent()?.parent());
    let prefixes = prefixes.map(|prefix| prefix.join("bin/mpicc").to_string_lossy().into_owned());
    let what = format!("the program's {}", library.display());
    first_of(family_of(library), what, prefixes.filter(|name| name.starts_with('/')).collect())
}

/// The first wrapper of this family, of `names` first, then of those in PATH.
fn first_of(family: Family, what: String, mut names: Vec<String>) -> Result<Wrapper, MpiError> {
    match family {
        Family::OpenMpi => names.push("mpicc.openmpi".into()),
        Family::Mpich => names.push("mpicc.mpich".into()),
        Family::Other => {}
    }
    names.extend(std::env::var("MPICC").ok().filter(|name| !name.is_empty()));
    names.push("mpicc".into());
    let there = names.iter().filter(|name| in_path(name).is_some());
    let mut wrappers = there.filter_map(|name| by_name(name).ok());
    wrappers.find(|wrapper| wrapper.family == family).ok_or_else(|| MpiError::NoWrapper {
        family,
        what,
        tried: names.join(", "),
    })
}

/// Finds a wrapper by its bare name, which is not taken for the name of an MPI.
fn by_name(name: &str) -> Result<Wrapper, MpiError> {
    let path = in_path(name).unwrap_or_else(|| name.into());
    wrapper(Some(&path.to_string_lossy()))
}

fn launcher_family(program: &Path) -> Option<Family> {
    let name = program.file_name()?.to_str()?;
    if !is_launcher(name) {
        return None;
    }
    match kind_of(program)? {
        Launcher::OpenMpi(_) => Some(Family::OpenMpi),
        Launcher::Hydra => Some(Family::Mpich),
        Launcher::Srun | Launcher::Other => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn libraries_tell_whose_they_are() {
        let reported = "\tlinux-vdso.so.1 (0x1)\n\tlibmpi.so.40 => /opt/ompi/lib/libmpi.so.40 (0x2)\n\tlibc.so.6 => /lib/libc.so.6 (0x3)\n";
        let library = mpi_among(reported).unwrap();
        assert_eq!(
            (library.to_str(), family_of(&library)),
            (Some("/opt/ompi/lib/libmpi.so.40"), Family::OpenMpi)
        );
        let missing = mpi_among("\tlibmpich.so.12 => not found\n").unwrap();
        assert_eq!((missing.to_str(), family_of(&missing)), (Some("libmpich.so.12"), Family::Mpich));
        assert_eq!(family_of(Path::new("/opt/intel/lib/libmpi.so.12")), Family::Mpich);
        assert_eq!(mpi_among("\tlibmpfr.so.6 => /lib/libmpfr.so.6 (0x1)\n"), None);
    }

    #[test]
    fn only_compiled_programs_are_asked() {
        assert!(elf("-n").is_none() && elf("4").is_none() && elf("/etc/passwd").is_none());
        assert!(elf("ls").is_some());
    }
}
