//! The C headers of the metric container, compiled and run as a third-party program would be: without eBPF.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const STRICT: [&str; 6] = ["-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wshadow", "-Wcast-qual"];

pub fn room(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Whether a compiler is installed.
pub fn has(compiler: &str) -> bool {
    let found = Command::new(compiler).arg("--version").stdin(Stdio::null()).output().is_ok();
    if !found {
        quell_testing::skip(format!("there is no {compiler}"));
    }
    found
}

/// Runs a command, and shows its output if it fails.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{printed}", output.status);
    printed
}

fn compile<I: AsRef<OsStr>>(compiler: &str, arguments: &[I]) {
    run(Command::new(compiler).args(STRICT).arg("-I").arg(room("include")).args(arguments));
}

/// Builds and runs a program of `tests/metrics`.
fn build_and_run(name: &str) {
    if !has("cc") {
        return;
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("metrics_{name}"));
    let source = room("tests/metrics").join(format!("{name}.c"));
    let options = ["-std=gnu11", "-O2", "-pthread"].map(OsStr::new);
    let files = [source.as_os_str(), OsStr::new("-o"), program.as_os_str(), OsStr::new("-lrt")];
    compile("cc", &[&options[..], &files[..]].concat());
    run(&mut Command::new(program));
}

#[test]
fn opens_and_refuses() {
    build_and_run("test_open");
}

#[test]
fn a_million_reads_are_whole() {
    build_and_run("test_tears");
}

#[test]
fn compiles_without_a_warning() {
    let dialects: [(&str, &[&str]); 8] = [
        ("gcc", &["-std=gnu99"]),
        ("gcc", &["-std=c99", "-D_GNU_SOURCE"]),
        ("gcc", &["-std=gnu17", "-O3"]),
        ("clang", &["-std=gnu99"]),
        ("clang", &["-std=c99", "-D_GNU_SOURCE"]),
        ("clang", &["-std=gnu17", "-O0"]),
        ("g++", &["-x", "c++", "-std=c++11"]),
        ("clang++", &["-x", "c++", "-std=c++11"]),
    ];
    let header = room("tests/metrics/uses_all.c");
    for (compiler, options) in dialects {
        if has(compiler) {
            let source = [OsStr::new("-fsyntax-only"), header.as_os_str()];
            compile(
                compiler,
                &[&options.iter().map(OsStr::new).collect::<Vec<_>>()[..], &source[..]].concat(),
            );
        }
    }
}
