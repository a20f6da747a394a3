//! `quell bench-node`: the launcher starts it in place of each rank. The first on a host records the kernel while its rank runs; the others
//! replace themselves by their rank at once.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use quell_node::machine;

use super::collect::host_file;
use crate::args::{BenchNode, SourcesMode};
use crate::kernel_side::record as record_kernel;
use crate::printer::Printer;

/// Runs the rank's program, and returns its exit code.
pub fn run(args: &BenchNode, printer: Printer) -> anyhow::Result<ExitCode> {
    // If the process that started this one is killed, the rank must end too, and this process with it.
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
    let host = machine::host().unwrap_or_else(|| "node".into());
    let file = |extension: &str| host_file(&args.out, &host, extension);
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]);
    if args.sources == SourcesMode::Off || !is_first(&file("first"))? {
        return Err(anyhow::Error::new(command.exec()).context(shown(&args.command[0])));
    }
    match record_kernel::alongside(&mut command, &file("quell"), printer) {
        Ok(status) => Ok(code(status)),
        Err(record_kernel::Unwatched(error)) if args.sources == SourcesMode::Auto => {
            // If this fails, only the reason is missing from the results.
            let _ = fs_err::write(file("unknown"), format!("{error:#}"));
            Err(anyhow::Error::new(command.exec()).context(shown(&args.command[0])))
        }
        Err(record_kernel::Unwatched(error)) => Err(error),
    }
}

/// Whether this is the first rank of this host.
fn is_first(mark: &Path) -> anyhow::Result<bool> {
    match std::fs::File::create_new(mark) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(anyhow::Error::new(error).context(format!(
            "this host cannot write to the folder {}; choose one with -o that every node sees",
            mark.parent().unwrap_or(mark).display()
        ))),
    }
}

fn shown(program: &std::ffi::OsStr) -> String {
    format!("{} cannot be started", program.to_string_lossy())
}

fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
