//! The command line with which each launcher starts a program.

use std::ffi::OsString;
use std::process::Command;

use super::{Family, Launcher, Mpi};

/// The number of ranks, and their distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Total number of ranks.
    pub ranks: u32,
    /// Maximum number per node; `None` leaves it to the launcher.
    pub per_node: Option<u32>,
    /// Extra launcher arguments, such as `--host a,b`, placed before the program.
    pub extra: Vec<String>,
}

/// The launcher's command line for `program`. Ranks are left unbound: the program binds each rank to a CPU of its own where
/// it may use several. No launcher does that correctly where hosts share a machine or a cgroup leaves out CPUs.
pub fn command(mpi: &Mpi, layout: &Layout, program: &[OsString]) -> Command {
    let mut command = Command::new(&mpi.launcher);
    match mpi.kind {
        Launcher::OpenMpi(major) => open_mpi(&mut command, major, layout),
        Launcher::Hydra => {
            command.arg("-n").arg(layout.ranks.to_string());
            if let Some(ranks) = layout.per_node {
                command.arg("-ppn").arg(ranks.to_string());
            }
        }
        Launcher::Srun => srun(&mut command, mpi.family, layout),
        Launcher::Other => drop(command.arg("-n").arg(layout.ranks.to_string())),
    }
    command.args(&layout.extra).args(program);
    command
}

fn open_mpi(command: &mut Command, major: u32, layout: &Layout) {
    command.arg("-n").arg(layout.ranks.to_string());
    command.args(["--bind-to", "none"]);
    let mapping = layout.per_node.map(|ranks| format!("ppr:{ranks}:node"));
    if major >= 5 {
        command.arg("--map-by").arg(mapping.unwrap_or_default() + ":OVERSUBSCRIBE");
    } else {
        command.arg("--oversubscribe");
        command.args(mapping.iter().flat_map(|mapping| ["--map-by", mapping]));
    }
    // Open MPI refuses root unless both variables are set. Who measures a node as root does so on purpose. No effect for other users.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("PRTE_ALLOW_RUN_AS_ROOT", "1").env("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
}

fn srun(command: &mut Command, family: Family, layout: &Layout) {
    command.arg("-n").arg(layout.ranks.to_string());
    if let Some(ranks) = layout.per_node {
        command.arg(format!("--ntasks-per-node={ranks}"));
    }
    // With the wrong PMI, every rank is a job of its own, or none starts.
    match family {
        Family::OpenMpi => drop(command.arg("--mpi=pmix")),
        Family::Mpich => drop(command.arg("--mpi=pmi2")),
        Family::Other => {}
    }
    // By default Slurm lets the other ranks wait for one that died.
    command.args(["--overcommit", "--cpu-bind=none", "--kill-on-bad-exit=1"]);
    // Within a step, for instance `srun --pty bash`, the nodes would seem allocated forever. A variable, because an older srun ignores it.
    if std::env::var_os("SLURM_STEP_ID").is_some() {
        command.env("SLURM_OVERLAP", "1");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(kind: Launcher, family: Family, layout: &Layout) -> String {
        let mpi =
            Mpi { compiler: "mpicc".into(), family, version: String::new(), launcher: "run".into(), kind };
        let command = command(&mpi, layout, &["prog".into(), "a b".into()]);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        words.join("|")
    }

    #[test]
    fn every_launcher_is_spoken_to_in_its_own_words() {
        let mut layout = Layout { ranks: 8, per_node: None, extra: vec!["--x".into()] };
        let open = |major, layout: &Layout| words(Launcher::OpenMpi(major), Family::OpenMpi, layout);
        assert_eq!(open(4, &layout), "-n|8|--bind-to|none|--oversubscribe|--x|prog|a b");
        assert_eq!(open(5, &layout), "-n|8|--bind-to|none|--map-by|:OVERSUBSCRIBE|--x|prog|a b");
        layout.per_node = Some(3);
        assert_eq!(open(4, &layout), "-n|8|--bind-to|none|--oversubscribe|--map-by|ppr:3:node|--x|prog|a b");
        assert_eq!(open(5, &layout), "-n|8|--bind-to|none|--map-by|ppr:3:node:OVERSUBSCRIBE|--x|prog|a b");
        assert_eq!(words(Launcher::Hydra, Family::Mpich, &layout), "-n|8|-ppn|3|--x|prog|a b");
        let slurm = words(Launcher::Srun, Family::Mpich, &layout);
        assert_eq!(
            slurm,
            "-n|8|--ntasks-per-node=3|--mpi=pmi2|--overcommit|--cpu-bind=none|--kill-on-bad-exit=1|--x|prog|a b"
        );
        assert_eq!(words(Launcher::Other, Family::Other, &layout), "-n|8|--x|prog|a b");
    }
}
