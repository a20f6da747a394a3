//! The MPI tracer under the MPIs of this machine: its logs of C and Fortran programs are consistent.

use quell_testing::{machine, skip};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fs_err as fs;
use quell_recording::mpi::{BLOCKING, Event, Operation, Region, Run as _, UNKNOWN, What};
use quell_recording::mpi_log::{INJECTED, LogRun};

use crate::support::small_disk::SmallDisk;
use crate::support::tools::{is_here, mpis};
use crate::support::{self, replaying};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn built(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The tracer, compiled as described in `mpi/trace/trace.h`, once for all tests, which run one at a time.
fn tracer(mpi: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tracer-{mpi}"));
    let library = folder.join("quell-trace.so");
    let include = root().join("crates/kernel/include");
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified());
    let entries = [root().join("mpi/trace"), root().join("mpi"), include.clone()]
        .map(|room| fs::read_dir(room).unwrap());
    let sources: Vec<PathBuf> = entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    let newest = sources.iter().map(|path| changed(path).unwrap()).max().unwrap();
    if changed(&library).is_ok_and(|made| made > newest) {
        return library;
    }
    fs::create_dir_all(&folder).unwrap();
    let mut objects = Vec::new();
    for source in sources.iter().filter(|path| path.extension().is_some_and(|ending| ending == "c")) {
        let object = folder.join(source.with_extension("o").file_name().unwrap());
        let mut command = Command::new(format!("mpicc.{mpi}"));
        command.args(["-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"]);
        command.args(["-Wno-unused-parameter", "-I"]).arg(&include);
        built(command.arg("-c").arg(source).arg("-o").arg(&object));
        objects.push(object);
    }
    // The rename makes the library appear as a whole.
    let made = folder.join("new.so");
    built(Command::new("cc").args(["-shared", "-o"]).arg(&made).args(objects).args(["-ldl", "-lpthread"]));
    fs::rename(&made, &library).unwrap();
    library
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mpi")
}

/// Compiles a program of `support/mpi`.
fn program(mpi: &str, source: &str, folder: &Path) -> PathBuf {
    let sources = sources();
    let program = folder.join(source.replace('.', "_"));
    let fortran = source.ends_with("f90");
    let mut command = Command::new(format!("{}.{mpi}", if fortran { "mpifort" } else { "mpicc" }));
    // Not optimised, because calls then have their own lines.
    command.args(["-O0", "-g", "-w", "-I"]).arg(&sources);
    if fortran {
        command.arg("-fallow-argument-mismatch");
    }
    built(command.arg("-o").arg(&program).arg(sources.join(source)).arg("-lpthread"));
    program
}

/// Runs a program with libraries preloaded into it and its launcher; the logs are in `folder/logs`.
fn run(mpi: &str, ranks: usize, libraries: &[&Path], program: &Path, more: &[(&str, &str)]) -> Output {
    run_with(mpi, ranks, libraries, program, &[], more)
}

/// The same, with arguments for the program.
fn run_with(
    mpi: &str,
    ranks: usize,
    libraries: &[&Path],
    program: &Path,
    words: &[&str],
    more: &[(&str, &str)],
) -> Output {
    let logs = program.with_extension("logs");
    let _ = fs::remove_dir_all(&logs);
    fs::create_dir(&logs).unwrap();
    let preload: Vec<_> = libraries.iter().map(|library| library.to_str().unwrap()).collect();
    let mut command = Command::new("timeout");
    command.args(["280", &format!("mpirun.{mpi}")]);
    if mpi == "openmpi" {
        command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-x", "LD_PRELOAD"]);
        command.args(["-x", "QUELL_TRACE"]);
    }
    command.arg("-n").arg(ranks.to_string()).arg(program).args(words);
    command.env("QUELL_TRACE", &logs).env("LD_PRELOAD", preload.join(":")).envs(more.iter().copied());
    command.output().unwrap()
}

fn opened(program: &Path) -> LogRun {
    LogRun::open(&program.with_extension("logs")).unwrap()
}

/// The events of each location, which must be complete.
fn events(run: &mut LogRun) -> Vec<Vec<Event>> {
    let mut all = Vec::new();
    for location in 0..run.definitions().locations.len() {
        let mut events = Vec::new();
        while run.read(location, &mut events).unwrap() {}
        assert!(events.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns));
        all.push(events);
    }
    all
}

/// Checks that every send is received once, every collective has all members, every request completes once, and calls nest.
fn adds_up(run: &mut LogRun) -> Vec<Vec<Event>> {
    let all = events(run);
    let definitions = run.definitions();
    let mut messages: BTreeMap<(u32, u32, u32, u64), i64> = BTreeMap::new();
    let mut collectives: HashMap<(u32, Operation), BTreeMap<u32, u64>> = HashMap::new();
    for (location, events) in definitions.locations.iter().zip(&all) {
        let mut open = Vec::new();
        let mut requests = BTreeSet::new();
        let done = |request: u64, requests: &mut BTreeSet<u64>| {
            assert!(
                request == BLOCKING || requests.remove(&request),
                "request {request} at {}",
                location.name
            );
        };
        for event in events {
            let peer =
                |comm: u32, rank: u32| definitions.comms[comm as usize].peers(location.rank)[rank as usize];
            match event.what {
                What::Enter(region) => open.push(region),
                What::Leave(region) => {
                    let at = open.iter().rposition(|one| *one == region).unwrap();
                    open.remove(at);
                }
                What::Send { comm, to, tag, bytes, request } => {
                    *messages.entry((location.rank, peer(comm, to), tag, bytes)).or_default() += 1;
                    requests.insert(request);
                }
                What::Recv { comm, from, tag, bytes, request } => {
                    *messages.entry((peer(comm, from), location.rank, tag, bytes)).or_default() -= 1;
                    done(request, &mut requests);
                }
                What::RecvPosted { request, .. } | What::CollectivePosted { request, .. } => {
                    requests.insert(request);
                }
                What::SendDone { request } | What::Cancelled { request } => done(request, &mut requests),
                What::Collective { operation, comm, request, .. } => {
                    done(request, &mut requests);
                    assert_ne!(comm, UNKNOWN);
                    *collectives.entry((comm, operation)).or_default().entry(location.rank).or_default() += 1;
                }
                _ => {}
            }
        }
        assert!(open.is_empty(), "{}: {open:?}", location.name);
        requests.remove(&BLOCKING);
        assert!(requests.is_empty(), "{}: {requests:?}", location.name);
    }
    messages.retain(|_, balance| *balance != 0);
    assert!(messages.is_empty(), "sent and not received, or the reverse: {messages:?}");
    for ((comm, operation), ranks) in &collectives {
        let comm = &definitions.comms[*comm as usize];
        let took_part: BTreeSet<u32> = ranks.keys().copied().collect();
        assert_eq!(took_part, comm.all_world_ranks().collect(), "{operation:?} on {}", comm.name);
        let counts: BTreeSet<u64> = ranks.values().copied().collect();
        assert_eq!(counts.len(), 1, "{operation:?} on {}: {ranks:?}", comm.name);
    }
    all
}

/// Checks that nothing is missing from a run that succeeded.
fn is_whole(run: &LogRun, ranks: u32) {
    let summary = run.summary();
    assert_eq!(summary.ranks, ranks);
    let odd =
        (&summary.missing, &summary.unfinished, &summary.silent, &summary.unknown_members, summary.lost);
    assert_eq!(odd, (&vec![], &vec![], &vec![], &vec![], 0));
    assert!(summary.wrong_mpi.is_empty() && summary.damaged.is_empty() && summary.unaligned.is_empty());
    assert!(!summary.library.is_empty() && !summary.program.is_empty());
}

fn went_well(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn programs_in_c_are_traced_whole() {
    let _machine = machine();
    for mpi in mpis() {
        let dir = tempfile::tempdir().unwrap();
        let library = tracer(mpi);
        let everything = program(mpi, "everything.c", dir.path());
        went_well(&run(mpi, 4, &[&library], &everything, &[]));
        let mut traced = opened(&everything);
        is_whole(&traced, 4);
        assert_eq!(traced.summary().one_sided, 4);
        let all = adds_up(&mut traced);
        let count = |what: fn(&What) -> bool| all.iter().flatten().filter(|event| what(&event.what)).count();
        assert!(count(|what| matches!(what, What::Probed { .. })) >= 2 * (3 + 3 + 4));
        assert_eq!(count(|what| matches!(what, What::Cancelled { .. })), 8);
        let definitions = traced.definitions();
        for phase in ["phase 1", "phase 2"] {
            assert!(definitions.regions.iter().any(|region| region.name == phase && !region.mpi));
        }
        sites_are_calls(&sources(), &definitions.regions);
        assert_eq!(definitions.comms.iter().filter(|comm| comm.remote.is_some()).count(), 2);

        let threads = program(mpi, "threads.c", dir.path());
        went_well(&run(mpi, 3, &[&library], &threads, &[]));
        let mut traced = opened(&threads);
        is_whole(&traced, 3);
        assert_eq!(traced.definitions().locations.len(), 6);
        adds_up(&mut traced);
    }
}

/// An MPI implements files and windows with its own calls, which are not the program's. All ranks of a file take part in its collectives.
#[test]
fn calls_within_calls_for_files_and_windows_are_not_the_programs() {
    let _machine = machine();
    for mpi in mpis() {
        let dir = tempfile::tempdir().unwrap();
        let (library, files) = (tracer(mpi), program(mpi, "files.c", dir.path()));
        let written = dir.path().join("written");
        went_well(&run_with(mpi, 2, &[&library], &files, &[written.to_str().unwrap()], &[]));
        assert_eq!(fs::metadata(&written).unwrap().len(), 2 * 1024);
        let mut traced = opened(&files);
        is_whole(&traced, 2);
        let all = adds_up(&mut traced);
        let calls = |events: &[Event]| -> Vec<String> {
            let regions = &traced.definitions().regions;
            let entered = events.iter().filter_map(|event| match event.what {
                What::Enter(region) => Some(regions[region as usize].name.clone()),
                _ => None,
            });
            entered.collect()
        };
        let made = "Init File_open File_set_view File_write_at_all File_sync File_read_at File_close \
                    Win_allocate Win_lock Put Win_flush Win_unlock Win_free Finalize";
        let expected: Vec<String> = made.split(' ').map(|call| format!("MPI_{call}")).collect();
        for events in &all {
            assert_eq!(calls(events), expected, "{mpi}");
            let is_barrier =
                |event: &&Event| matches!(event.what, What::Collective { operation: Operation::Barrier, .. });
            assert_eq!(events.iter().filter(is_barrier).count(), 3, "{mpi}: set_view, write_at_all, sync");
        }
    }
}

#[test]
fn programs_in_fortran_are_traced_by_whatever_bindings() {
    let _machine = machine();
    for mpi in mpis().into_iter().filter(|mpi| is_here(&format!("mpifort.{mpi}"))) {
        let dir = tempfile::tempdir().unwrap();
        let library = tracer(mpi);
        for source in ["with_mpif.f90", "with_mpi.f90", "with_mpi_f08.f90"] {
            let program = program(mpi, source, dir.path());
            went_well(&run(mpi, 3, &[&library], &program, &[]));
            let mut traced = opened(&program);
            is_whole(&traced, 3);
            // Per rank four calls, in addition to dup, barrier and free; and a message from rank 0 to rank 1.
            assert_eq!(traced.summary().calls, 3 * 7 + 2, "{mpi} {source}");
            adds_up(&mut traced);
            sites_are_calls(&sources(), &traced.definitions().regions);
        }
    }
}

/// Compares each call site with the line of the source that it names.
fn sites_are_calls(sources: &Path, regions: &[Region]) {
    for region in regions.iter().filter(|region| region.mpi) {
        let site = region.site.as_deref().unwrap_or_default();
        let place = site.rsplit_once(" (").and_then(|(_, place)| place.strip_suffix(')')?.split_once(':'));
        let (file, line) = place.unwrap_or_else(|| panic!("{}: {site:?}", region.name));
        let text = fs::read_to_string(sources.join(file)).unwrap().to_lowercase();
        let found = text.lines().nth(line.parse::<usize>().unwrap() - 1).unwrap();
        // GCC gives some calls of a Fortran program the line of the program itself.
        let is_vague = found.starts_with("program ");
        assert!(
            is_vague || found.contains(&region.name.to_lowercase()),
            "{} at {site}: {found}",
            region.name
        );
    }
}

/// A module with GCC's OpenMP functions, and a runtime that the linking compiler brings.
fn module(linker: &str, folder: &Path) -> Option<PathBuf> {
    let (object, module) = (folder.join("module.o"), folder.join(format!("{linker}.so")));
    let mut gcc = Command::new("gcc");
    built(gcc.args(["-fopenmp", "-fPIC", "-c", "-o"]).arg(&object).arg(sources().join("module.c")));
    let mut link = Command::new(linker);
    let linked = link.args(["-fopenmp", "-shared", "-o"]).arg(&module).arg(&object).output();
    linked.is_ok_and(|output| output.status.success()).then_some(module)
}

/// The tracer stands in front of both runtimes.
#[test]
fn each_module_keeps_its_openmp_runtime() {
    let _machine = machine();
    for mpi in mpis() {
        let dir = tempfile::tempdir().unwrap();
        let (Some(first), Some(second)) = (module("gcc", dir.path()), module("clang", dir.path())) else {
            skip("there is no clang with an OpenMP runtime");
            return;
        };
        let library = tracer(mpi);
        let program = program(mpi, "two_runtimes.c", dir.path());
        let words = [first.to_str().unwrap(), second.to_str().unwrap()];
        went_well(&run_with(mpi, 1, &[&library], &program, &words, &[]));
        let mut traced = opened(&program);
        let forks = |events: &Vec<Event>| {
            events.iter().filter(|event| matches!(event.what, What::Fork { .. })).count()
        };
        assert_eq!(events(&mut traced).iter().map(forks).sum::<usize>(), 6, "{mpi}");
    }
}

#[test]
fn a_rank_that_is_killed_leaves_what_it_did() {
    let _machine = machine();
    for mpi in mpis() {
        let dir = tempfile::tempdir().unwrap();
        let library = tracer(mpi);
        let dies = program(mpi, "dies.c", dir.path());
        // All calls are in the stage, or most were appended.
        for calls in [50, 5000] {
            let died = run_with(mpi, 3, &[&library], &dies, &[&calls.to_string()], &[]);
            assert!(!died.status.success());
            let mut traced = opened(&dies);
            assert_eq!(traced.summary().unfinished, [0, 1, 2]);
            let all = events(&mut traced);
            assert_eq!(collectives(&all[1]), calls, "{mpi}");
            // The others wait in the next call.
            assert!(matches!(all[0].last().unwrap().what, What::CollectiveBegin), "{:?}", all[0].last());
        }
    }
}

fn collectives(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event.what, What::Collective { .. })).count()
}

#[test]
fn what_a_full_disk_takes_is_counted() {
    let _machine = machine();
    let Some(disk) = SmallDisk::mount(1 << 20) else {
        return skip("this user may not mount a small file system");
    };
    for mpi in mpis() {
        let library = tracer(mpi);
        let dies = program(mpi, "dies.c", disk.path());
        // Three ranks write some 1.3 MB.
        run_with(mpi, 3, &[&library], &dies, &["4000"], &[]);
        let mut traced = opened(&dies);
        assert!(traced.summary().lost > 0, "{mpi}");
        for events in events(&mut traced) {
            let kept = collectives(&events);
            assert!((100..4000).contains(&kept), "{mpi}: {kept}");
        }
        fs::remove_dir_all(dies.with_extension("logs")).unwrap();
        fs::remove_file(dies).unwrap();
    }
}

#[test]
fn a_limit_ends_a_log_and_says_what_was_lost() {
    let _machine = machine();
    let Some(mpi) = mpis().first().copied() else { return };
    let dir = tempfile::tempdir().unwrap();
    let library = tracer(mpi);
    let everything = program(mpi, "everything.c", dir.path());
    went_well(&run(mpi, 4, &[&library], &everything, &[("QUELL_TRACE_LIMIT", "100")]));
    let mut traced = opened(&everything);
    assert!(traced.summary().lost > 100);
    assert!(events(&mut traced).iter().all(Vec::is_empty));
}

/// All logs of a job, also those of threads, have its name, and no other job's.
#[test]
fn the_logs_of_a_job_name_it() {
    /// Of `job` in the head (mpi/trace_log.h).
    const AT: usize = 1240;
    let _machine = machine();
    for mpi in mpis() {
        let dir = tempfile::tempdir().unwrap();
        let (library, everything) = (tracer(mpi), program(mpi, "everything.c", dir.path()));
        let mut jobs = Vec::new();
        for _ in 0..2 {
            went_well(&run(mpi, 4, &[&library], &everything, &[]));
            let logs = fs::read_dir(everything.with_extension("logs")).unwrap();
            let bytes = logs.map(|log| fs::read(log.unwrap().path()).unwrap());
            let of_logs: Vec<[u8; 8]> = bytes.map(|bytes| bytes[AT..][..8].try_into().unwrap()).collect();
            assert!(of_logs.len() >= 4 && of_logs.iter().all(|job| *job == of_logs[0]), "{mpi}: {of_logs:?}");
            assert_ne!(of_logs[0], [0; 8], "{mpi}");
            jobs.push(of_logs[0]);
        }
        assert_ne!(jobs[0], jobs[1], "{mpi}");
    }
}

/// Noise that an injector, loaded before the tracer, burned between two calls is recorded at the entry of the second.
#[test]
fn injected_noise_is_known_before_the_call_is_entered() {
    let _machine = machine();
    let Some(mpi) = mpis().first().copied() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (library, everything) = (tracer(mpi), program(mpi, "busy.c", dir.path()));
    let noise = replaying::beat(dir.path(), "noise", "20ms", "2ms");
    let logs = everything.with_extension("logs");
    fs::create_dir(&logs).unwrap();
    for how in ["boundary", "timer"] {
        fs::remove_dir_all(&logs).unwrap();
        fs::create_dir(&logs).unwrap();
        let mut command = support::quell(dir.path());
        command.arg("replay").arg(&noise).args(["--context", how, "--"]).args(replaying::launch(mpi, 2));
        if mpi == "openmpi" {
            command.args(["-x", "QUELL_TRACE"]);
        }
        command.arg(&everything).env("QUELL_TRACE", &logs).env("LD_PRELOAD", &library);
        went_well(&command.output().unwrap());
        let mut traced = opened(&everything);
        is_whole(&traced, 2);
        let injected = traced.definitions().sources.iter().position(|name| name == INJECTED).unwrap() as u32;
        let barrier =
            traced.definitions().regions.iter().position(|one| one.name == "MPI_Barrier").unwrap() as u32;
        for events in adds_up(&mut traced) {
            // Fifty times 2 ms of work with 10 % of noise.
            let (mut before_entry, mut last) = (0, 0);
            for pair in events.windows(2) {
                let What::Noise { source, total_ns } = pair[0].what else { continue };
                if source == injected {
                    assert!(total_ns >= last, "{how}");
                    if pair[1].what == What::Enter(barrier) {
                        before_entry += total_ns - last;
                    }
                    last = total_ns;
                }
            }
            // At least two detours, of the five that are due in 0.1 s of work. A timer also burns while the barrier waits, which
            // is as long as the other rank's CPU is away.
            assert!(before_entry >= 4_000_000, "{how}: {before_entry} of {last}");
            assert!(how == "timer" || 2 * before_entry >= last, "{how}: {before_entry} of {last}");
        }
    }
}

#[test]
fn the_tracer_of_another_mpi_says_so_and_leaves_the_program_alone() {
    let _machine = machine();
    if mpis().len() < 2 {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (mpi, other) in [("openmpi", "mpich"), ("mpich", "openmpi")] {
        let library = tracer(other);
        let everything = program(mpi, "everything.c", dir.path());
        went_well(&run(mpi, 4, &[&library], &everything, &[]));
        let traced = opened(&everything);
        assert_eq!(traced.summary().wrong_mpi.len(), 4);
        assert!(traced.definitions().locations.is_empty());
    }
}
