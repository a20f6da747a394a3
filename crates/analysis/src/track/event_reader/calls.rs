//! Properties of calls that the MPI standard defines and events do not show: one table, by the call's name. Sections are those of MPI 4.0.

use quell_recording::mpi::Region;

/// Calls that return whether or not the requested operation has completed. Any other call that completes an operation blocks until it has:
/// `MPI_Waitany` and `MPI_Waitsome` too (3.7.5), and `MPI_Probe` and `MPI_Mprobe` (3.8.1, 3.8.2). `MPI_Test_cancelled` (3.8.4) is not one of
/// them: it only reads a status.
const POLLS: [&str; 12] = [
    "MPI_Test",                   // 3.7.3
    "MPI_Testany",                // 3.7.5
    "MPI_Testall",                // 3.7.5
    "MPI_Testsome",               // 3.7.5
    "MPI_Request_get_status",     // 3.7.6
    "MPI_Request_get_status_any", // MPI 4.1, 3.7.6
    "MPI_Request_get_status_all",
    "MPI_Request_get_status_some",
    "MPI_Iprobe",   // 3.8.1
    "MPI_Improbe",  // 3.8.2
    "MPI_Parrived", // 4.2.2
    "MPI_Win_test", // 12.5.2
];

/// Sends that complete only once their receive has begun, whatever their size (3.4, 3.7.2).
const SYNCHRONOUS: [&str; 2] = ["MPI_Ssend", "MPI_Issend"];

/// Sends that the MPI copies into a buffer of the program's, so that they never wait (3.4, 3.7.2).
const BUFFERED: [&str; 2] = ["MPI_Bsend", "MPI_Ibsend"];

/// Calls that may wait for other ranks, by rules that their events do not show: one-sided synchronisation (12.5), shared and split access to
/// files (14.4), and processes that are started or connected (11.8, 11.9).
const UNSHOWN: [&str; 28] = [
    "MPI_Win_start",
    "MPI_Win_complete",
    "MPI_Win_wait",
    "MPI_Win_lock",
    "MPI_Win_lock_all",
    "MPI_Win_unlock",
    "MPI_Win_unlock_all",
    "MPI_Win_flush",
    "MPI_Win_flush_all",
    "MPI_Win_flush_local",
    "MPI_Win_flush_local_all",
    "MPI_Get",
    "MPI_Put",
    "MPI_Accumulate",
    "MPI_Get_accumulate",
    "MPI_Fetch_and_op",
    "MPI_Compare_and_swap",
    "MPI_File_read_shared",
    "MPI_File_write_shared",
    "MPI_File_read_all_end",
    "MPI_File_read_at_all_end",
    "MPI_File_read_ordered_end",
    "MPI_File_write_all_end",
    "MPI_File_write_at_all_end",
    "MPI_File_write_ordered_end",
    "MPI_Comm_spawn",
    "MPI_Comm_accept",
    "MPI_Comm_connect",
];

/// If a call polls again within this time plus twice the duration of the previous one, in ns, the program did nothing in between.
const AGAIN_NS: i64 = 2_000;

/// Properties of a region, by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::track) struct CallKind {
    /// It belongs to MPI.
    pub mpi: bool,
    /// It may return before the requested operation has completed.
    pub polls: bool,
    /// It may wait for other ranks in a way that its events do not show.
    pub unshown: bool,
    /// Its send waits for its receiver, whatever the size.
    pub synchronous: bool,
    /// Its send waits for no receiver, whatever the size.
    pub buffered: bool,
    /// In it the threads of an OpenMP team wait for each other.
    pub team_barrier: bool,
    pub initializes: bool,
    pub finalizes: bool,
}

impl CallKind {
    pub fn from_region(region: &Region) -> Self {
        let name = call_name(&region.name);
        Self {
            mpi: region.mpi,
            polls: region.mpi && POLLS.contains(&name),
            unshown: region.mpi && UNSHOWN.contains(&name),
            synchronous: SYNCHRONOUS.contains(&name),
            buffered: BUFFERED.contains(&name),
            team_barrier: !region.mpi && is_team_barrier(&region.name),
            initializes: matches!(name, "MPI_Init" | "MPI_Init_thread"),
            finalizes: name == "MPI_Finalize",
        }
    }
}

/// The name without suffixes of tools, as in `MPI_Recv()`, and without the suffix for large counts.
fn call_name(name: &str) -> &str {
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
    let name = &name[..end];
    name.strip_suffix("_c").unwrap_or(name)
}

/// Whether a region is a barrier of OpenMP, as quell and Score-P name it: `omp barrier`, `!$omp implicit barrier @a.c:7`.
fn is_team_barrier(name: &str) -> bool {
    let name = name.trim_start_matches("!$");
    ["omp barrier", "omp implicit barrier"].iter().any(|barrier| {
        name.strip_prefix(barrier).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '@']))
    })
}

/// Whether a call that polls, `idle_ns` of work after an unsuccessful one of `last_ns`, continues the same wait.
pub(in crate::track) fn polls_again(idle_ns: i64, last_ns: i64) -> bool {
    idle_ns <= last_ns.saturating_mul(2).saturating_add(AGAIN_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str) -> CallKind {
        CallKind::from_region(&Region { name: name.to_owned(), site: None, mpi: true })
    }

    #[test]
    fn calls_that_return_at_once_poll_and_those_that_block_do_not() {
        for name in
            ["MPI_Test", "MPI_Testsome", "MPI_Iprobe", "MPI_Improbe", "MPI_Request_get_status", "MPI_Test()"]
        {
            assert!(kind(name).polls, "{name}");
        }
        let blocking = [
            "MPI_Wait",
            "MPI_Waitany",
            "MPI_Waitsome",
            "MPI_Waitall",
            "MPI_Probe",
            "MPI_Mprobe",
            "MPI_Test_cancelled",
        ];
        for name in blocking {
            assert!(!kind(name).polls, "{name}");
        }
    }

    #[test]
    fn a_region_of_the_program_is_no_call_that_polls() {
        let region = Region { name: "MPI_Test".to_owned(), site: None, mpi: false };
        assert!(!CallKind::from_region(&region).polls);
    }

    #[test]
    fn synchronous_sends_are_so_whether_they_block_or_not() {
        for name in ["MPI_Ssend", "MPI_Issend", "MPI_Issend_c"] {
            assert!(kind(name).synchronous, "{name}");
        }
        assert!(!kind("MPI_Isend").synchronous);
        assert!(kind("MPI_Bsend").buffered && kind("MPI_Ibsend").buffered && !kind("MPI_Send").buffered);
    }

    #[test]
    fn barriers_of_openmp_are_those_of_its_name() {
        let is = |name: &str, mpi| {
            CallKind::from_region(&Region { name: name.to_owned(), site: None, mpi }).team_barrier
        };
        for name in ["omp barrier", "omp implicit barrier", "!$omp implicit barrier @lulesh.cc:7"] {
            assert!(is(name, false), "{name}");
        }
        assert!(!is("omp barriers", false) && !is("omp parallel", false) && !is("omp barrier", true));
    }

    #[test]
    fn a_poll_goes_on_within_2_us_and_twice_the_last_one() {
        assert!(polls_again(2_000, 0) && !polls_again(2_001, 0));
        assert!(polls_again(2_100, 50) && !polls_again(2_101, 50));
        assert!(polls_again(i64::MAX, i64::MAX), "it saturates");
    }

    #[test]
    fn a_run_begins_and_ends_with_the_calls_for_that() {
        let is = |name: &str| (kind(name).initializes, kind(name).finalizes);
        assert_eq!([is("MPI_Init"), is("MPI_Init_thread")], [(true, false); 2]);
        assert_eq!(is("MPI_Finalize"), (false, true));
        assert_eq!([is("MPI_Finalized"), is("MPI_Initialized")], [(false, false); 2]);
    }
}
