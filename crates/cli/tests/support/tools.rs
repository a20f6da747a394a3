//! What a test needs of the machine: checks for it, and reports what is missing.

use std::path::Path;
use std::process::Command;

use quell_testing::{skip, skip_for_hardware};

use crate::support::cpus;

/// Whether a program is installed.
pub fn is_here(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let sbin = ["/usr/sbin", "/sbin"].map(Into::into);
    let here = std::env::split_paths(&paths).chain(sbin).any(|folder| folder.join(program).is_file());
    if !here {
        skip(format!("there is no {program}"));
    }
    here
}

/// The MPIs whose compiler and launcher are installed.
pub fn mpis() -> Vec<&'static str> {
    let launcher = |mpi: &str| if mpi == "openmpi" { "mpirun.openmpi" } else { "mpiexec.mpich" };
    let here = |mpi: &&str| is_here(&format!("mpicc.{mpi}")) && is_here(launcher(mpi));
    ["openmpi", "mpich"].into_iter().filter(here).collect()
}

/// Whether root runs the tests.
pub fn is_root() -> bool {
    // SAFETY: the call has no conditions.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        skip("it needs root");
    }
    root
}

/// Whether at least two CPUs are available, so that one can be left to the system.
pub fn has_two_cpus() -> bool {
    let two = cpus() > 1;
    if !two {
        skip_for_hardware("it needs two CPUs, and may use one");
    }
    two
}

/// Whether this user may record the kernel. Root with BTF always may, so a refusal there is a failure.
pub fn may_watch_the_kernel(folder: &Path) -> bool {
    let args = ["record", "-o", "may.quell", "--method", "kernel", "--duration", "50ms", "-q"];
    let output = super::run(folder, &args);
    // SAFETY: the call has no conditions.
    let must = unsafe { libc::geteuid() } == 0 && Path::new("/sys/kernel/btf/vmlinux").exists();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() || !must, "{printed}");
    if !output.status.success() {
        skip(printed.trim());
    }
    output.status.success()
}

/// Compiles a source file of this folder. The caller checks that the compiler is installed, with [`is_here`].
pub fn compile(compiler: &str, source: &str, program: &Path, more: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support").join(source);
    compile_file(compiler, &source, program, more);
}

/// As [`compile`], for a source file anywhere.
pub fn compile_file(compiler: &str, source: &Path, program: &Path, more: &[&str]) {
    let mut command = Command::new(compiler);
    command.args(["-O2", "-o"]).arg(program).arg(source).args(more);
    let output = command.output().unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
}
