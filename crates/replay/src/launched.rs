//! Whether this process is one of several copies that a launcher started, according to its environment.

use core::ffi::CStr;

/// This process's position among its copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    /// Its rank among all.
    pub rank: u32,
    /// The number of copies, if the launcher passes it.
    pub size: Option<u32>,
    /// Its rank among those on this host, if the launcher passes it.
    pub local_rank: Option<u32>,
}

/// A launcher's variables: rank, number of ranks, rank on this host.
struct Names(&'static CStr, Option<&'static CStr>, &'static [&'static CStr]);

/// MPI launchers come before the batch systems in which they run. Slurm's variables are those of a step: in a batch script, which runs
/// once, SLURM_NTASKS is the number of tasks that may be started.
const LAUNCHERS: &[Names] = &[
    Names(c"OMPI_COMM_WORLD_RANK", Some(c"OMPI_COMM_WORLD_SIZE"), &[c"OMPI_COMM_WORLD_LOCAL_RANK"]),
    Names(c"MV2_COMM_WORLD_RANK", Some(c"MV2_COMM_WORLD_SIZE"), &[c"MV2_COMM_WORLD_LOCAL_RANK"]),
    Names(c"PMI_RANK", Some(c"PMI_SIZE"), &[c"MPI_LOCALRANKID", c"PMI_LOCAL_RANK", c"SLURM_LOCALID"]),
    Names(c"PALS_RANKID", Some(c"PALS_NRANKS"), &[c"PALS_LOCAL_RANKID"]),
    Names(c"FLUX_TASK_RANK", Some(c"FLUX_JOB_SIZE"), &[c"FLUX_TASK_LOCAL_ID"]),
    Names(c"SLURM_PROCID", Some(c"SLURM_STEP_NUM_TASKS"), &[c"SLURM_LOCALID"]),
    Names(c"PMIX_RANK", None, &[]),
];

impl Launched {
    /// From the environment's numbers, as `number` returns them; `None` if no launcher started this process.
    pub fn from_environment(number: impl Fn(&'static CStr) -> Option<u32>) -> Option<Self> {
        LAUNCHERS.iter().find_map(|Names(rank, size, local)| {
            let rank = number(rank)?;
            let size = match size {
                Some(name) => Some(number(name)?),
                None => None,
            };
            // A rank beyond the count is left over from another launcher.
            let fits = size.is_none_or(|size| rank < size);
            fits.then(|| Self { rank, size, local_rank: local.iter().find_map(|name| number(name)) })
        })
    }

    /// From this process's own environment.
    pub fn here() -> Option<Self> {
        Self::from_environment(|name| {
            // SAFETY: `name` is NUL-terminated; so is the answer, if there is one, and it is read before anything can change it.
            let text = unsafe {
                let text = libc::getenv(name.as_ptr());
                (!text.is_null()).then(|| CStr::from_ptr(text))
            };
            text?.to_str().ok()?.trim().parse().ok()
        })
    }

    /// Whether there is more than one copy.
    pub fn among_several(&self) -> bool {
        self.size != Some(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launched(pairs: &[(&str, &str)]) -> Option<Launched> {
        Launched::from_environment(|name| {
            let found = pairs.iter().find(|pair| name.to_str() == Ok(pair.0));
            found.and_then(|pair| pair.1.parse().ok())
        })
    }

    #[test]
    fn each_launcher_is_known_by_its_variables() {
        let third = |local_rank| Launched { rank: 2, size: Some(4), local_rank };
        let open = [("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "2")];
        assert_eq!(launched(&open), Some(third(None)));
        let hydra = [("PMI_RANK", "2"), ("PMI_SIZE", "4"), ("MPI_LOCALRANKID", "1")];
        assert_eq!(launched(&hydra), Some(third(Some(1))));
        let slurm = [("SLURM_PROCID", "2"), ("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_LOCALID", "0")];
        assert_eq!(launched(&slurm), Some(third(Some(0))));
        assert_eq!(launched(&[("PMIX_RANK", "3")]), Some(Launched { rank: 3, size: None, local_rank: None }));
    }

    #[test]
    fn mpirun_within_slurm_is_mpirun() {
        let both = [
            ("SLURM_PROCID", "0"),
            ("SLURM_STEP_NUM_TASKS", "1"),
            ("OMPI_COMM_WORLD_RANK", "5"),
            ("OMPI_COMM_WORLD_SIZE", "8"),
        ];
        assert_eq!(launched(&both).map(|found| found.size), Some(Some(8)));
    }

    #[test]
    fn a_batch_script_and_a_shell_are_no_copies() {
        assert_eq!(launched(&[]), None);
        let batch = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4"), ("SLURM_LOCALID", "0")];
        assert_eq!(launched(&batch), None);
        let shell = [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1")];
        assert!(launched(&shell).is_some_and(|found| !found.among_several()));
        assert_eq!(launched(&[("PMI_RANK", "7"), ("PMI_SIZE", "4")]), None, "left over");
        assert_eq!(launched(&[("PMI_RANK", "x"), ("PMI_SIZE", "4")]), None);
    }
}
