//! Measures the network within this host before a run, if it was not measured before.

use std::process::{Command, Stdio};

use quell_node::mpi::Wrapper;

use super::folder::{Folder, this_host};
use crate::printer::Printer;
use crate::steps::measured_networks;

/// Rounds of a short measurement: its medians are within a few percent of those of ten.
const ROUNDS: &str = "3";

/// Runs `quell bench loggp` with two ranks of this host, which keeps what it finds.
pub fn measure(wrapper: &Wrapper, folder: &Folder, printer: Printer) -> anyhow::Result<()> {
    if measured_networks::of_host(wrapper, &this_host()).is_some() {
        return Ok(());
    }
    printer.status("measuring the network within this host, once for this MPI");
    let results = folder.path.join("loggp");
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--quiet", "bench", "loggp", "-n", "2", "--sources", "off", "--rounds", ROUNDS, "--mpi"]);
    command.arg(&wrapper.compiler).arg("-o").arg(&results);
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let last = words.lines().next_back().unwrap_or_default();
        printer.warn(&format!("the network was not measured: {last}"));
    }
    if results.exists() {
        fs_err::remove_dir_all(&results)?;
    }
    Ok(())
}
