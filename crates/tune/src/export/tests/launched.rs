//! The bindings, under the launchers that are installed.

use std::path::Path;
use std::process::Command;

use super::super::bindings;
use super::text;
use crate::Root;
use crate::facts::{Facts, Parts};

/// A rank that prints its CPUs.
const TELL: [&str; 3] = ["sh", "-c", "grep Cpus_allowed_list: /proc/self/status"];

/// Runs a command line, with [`TELL`] in place of `./job`; returns the CPU lists of all ranks, sorted. None if the program is not installed.
fn run(folder: &Path, line: &str) -> Option<Vec<String>> {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words.filter(|word| *word != "./job")).args(TELL).current_dir(folder);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let printed = command.output().ok()?;
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert!(printed.status.success(), "{line}: {text}{}", String::from_utf8_lossy(&printed.stderr));
    let mut lists: Vec<String> =
        text.lines().filter_map(|line| Some(line.split_once('\t')?.1.to_owned())).collect();
    lists.sort();
    Some(lists)
}

/// On the kernel that runs the tests.
mod on_this_machine {
    use super::*;

    #[test]
    fn ranks_land_where_the_files_say() {
        let facts = Facts::look(&Root::system()).unwrap();
        if facts.online.len() < 2 || facts.cores.iter().any(|core| core.len() > 1) {
            return quell_testing::skip_for_hardware("this machine has no two cores of one thread");
        }
        let two: Vec<_> = facts.online.iter().copied().take(2).collect();
        let parts = Parts { compute: two.clone(), housekeeping: Vec::new() };
        for ranks in [1, 2] {
            let export = bindings(&facts, &parts, Some(ranks));
            let folder = tempfile::tempdir().unwrap();
            for file in &export.files {
                fs_err::write(folder.path().join(&file.name), &file.text).unwrap();
            }
            let wanted: Vec<String> = two.iter().take(ranks as usize).map(ToString::to_string).collect();
            let of = |name: &str, begin: &str| {
                let mut lines =
                    text(&export, name).lines().map(|line| line.trim_start_matches(['#', ' ']).to_owned());
                lines.find(|line| line.starts_with(begin)).unwrap()
            };
            let lines = [
                of("rankfile", "mpirun").replace("mpirun", "mpirun.openmpi"),
                of("mpich.txt", "mpiexec").replace("mpiexec", "mpiexec.mpich"),
                format!("mpirun.openmpi --bind-to none -np {ranks} sh rank-taskset.sh"),
                format!("mpiexec.mpich -n {ranks} sh rank-taskset.sh"),
            ];
            for line in lines {
                match run(folder.path(), &line) {
                    Some(lists) => assert_eq!(lists, wanted, "{line}"),
                    None => quell_testing::skip(format!("{line}: not installed")),
                }
            }
        }
    }
}
