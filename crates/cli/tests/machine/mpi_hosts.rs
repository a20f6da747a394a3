//! Many hosts under the installed launchers: fake hosts on this machine, which share its kernel, clock and CPUs.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::support::fake_hosts::{BRIDGE, FakeHosts, HEAD, INTERFACE, NETWORK, lacks};
use crate::support::node::last_cpu;
use crate::support::{archived, cpus, json, slurm};
use quell_testing::{machine, skip};
use serde_json::Value;

const QUELL: &str = env!("CARGO_BIN_EXE_quell");
const HOSTS: [&str; 2] = ["qa", "qb"];
const TOOLS: &[&str] = &["unshare", "nsenter", "ip", "sshd", "ssh", "ssh-keygen"];
const MPIS: [(&str, &str, &str); 2] =
    [("openmpi", "mpicc.openmpi", "mpirun.openmpi"), ("mpich", "mpicc.mpich", "mpiexec.mpich")];

/// Whether the required programs are installed; reports the skipped test otherwise.
fn has(programs: &[&str]) -> bool {
    let missing = lacks(programs);
    if let Some(why) = &missing {
        skip(why);
    }
    missing.is_none()
}

/// The MPIs that are completely installed.
fn mpis() -> impl Iterator<Item = (&'static str, &'static str)> {
    MPIS.iter()
        .filter(|(_, wrapper, launcher)| has(&[*wrapper, *launcher]))
        .map(|&(mpi, _, launcher)| (mpi, launcher))
}

/// The launcher arguments for both hosts, with `slots` slots on each.
fn words(hosts: &FakeHosts, mpi: &str, slots: u32) -> String {
    let agent = hosts.agent();
    match mpi {
        "openmpi" => format!(
            "--mca plm_rsh_agent {agent} --mca oob_tcp_if_include {NETWORK} --mca btl self,tcp --mca btl_tcp_if_include {NETWORK} --mca pml \
             ob1 --host qa:{slots},qb:{slots}"
        ),
        _ => format!("-launcher ssh -launcher-exec {agent} -iface {BRIDGE} -hosts qa:{slots},qb:{slots}"),
    }
}

/// MPICH's transport, UCX, takes its network from these variables.
fn tell_ucx(command: &mut Command) {
    command.env("UCX_TLS", "tcp,self").env("UCX_NET_DEVICES", INTERFACE);
}

/// A run that takes longer than this hangs: the longest takes some ten seconds on a busy machine.
const LONGEST: Duration = Duration::from_secs(90);

/// Runs an MPI job. In `MPI_Finalize` of MPICH 4.0 over UCX, a rank that waits for the launcher no longer answers its peer, which waits for
/// it. So on a busy machine such a run may hang, with quell or without. It is ended and repeated; what it left in `folder` is removed.
fn finish(hosts: &FakeHosts, folder: Option<&str>, command: &mut Command) -> Output {
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for _ in 0..3 {
        let child = command.spawn().unwrap();
        let group = child.id() as i32;
        let (send, ended) = mpsc::channel();
        let waits = std::thread::spawn(move || send.send(child.wait_with_output()));
        if let Ok(output) = ended.recv_timeout(LONGEST) {
            return output.unwrap();
        }
        // SAFETY: a plain system call on processes that this test started.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        waits.join().unwrap().unwrap();
        if let Some(folder) = folder {
            // It may not have come so far.
            let _ = fs_err::remove_dir_all(hosts.path(folder));
        }
    }
    panic!("none of three runs ended within {LONGEST:?}");
}

fn success(what: &str, output: &Output) -> String {
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{what}: {printed}");
    printed
}

fn bench(hosts: &FakeHosts, mpi: &str, more: &[&str]) -> Command {
    let mut command = slurm::on_head(hosts, QUELL);
    command.args(["bench", "bsp", "--mpi", mpi, "-n", "2", "--duration", "500ms", "--json"]).args(more);
    command
}

/// Checks that there are two recordings, each with the right rank, bound to CPUs of their own.
fn check_bench(hosts: &FakeHosts, folder: &str, output: &Output) {
    success(folder, output);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (rank, host) in HOSTS.iter().enumerate() {
        let row = &document["by_rank"][rank];
        assert_eq!((row["rank"].as_u64(), row["host"].as_str()), (Some(rank as u64), Some(*host)), "{row}");
    }
    let show = json(hosts.folder(), &["show", folder, "--json"]);
    let mut bindings = Vec::new();
    for (rank, host) in HOSTS.iter().enumerate() {
        let rows = show["hosts"].as_array().unwrap();
        let row = rows.iter().find(|row| row["host"] == *host).unwrap();
        assert_eq!((rows.len(), row["method"].as_str()), (2, Some("phases")), "{show}");
        let ranks = row["ranks"].as_array().unwrap();
        assert_eq!((ranks.len(), ranks[0]["rank"].as_u64()), (1, Some(rank as u64)), "{row}");
        bindings.push(ranks[0]["cpus"].as_str().unwrap().to_owned());
    }
    if cpus() >= 2 {
        assert!(
            bindings[0] != bindings[1] && bindings.iter().all(|one| one.parse::<u32>().is_ok()),
            "{bindings:?}"
        );
    }
}

#[test]
fn ranks_of_two_hosts_are_benched_and_kept_apart() {
    if !has(TOOLS) {
        return;
    }
    let _machine = machine();
    let hosts = FakeHosts::new(&HOSTS);
    for (mpi, _) in mpis() {
        let mut command = bench(&hosts, mpi, &["-o", mpi, "--launcher-args", &words(&hosts, mpi, 1)]);
        tell_ucx(&mut command);
        check_bench(&hosts, mpi, &finish(&hosts, Some(mpi), &mut command));
    }
}

#[test]
fn two_hosts_are_recorded_at_once_by_four_copies() {
    if !has(TOOLS) {
        return;
    }
    let _machine = machine();
    let hosts = FakeHosts::new(&HOSTS);
    for (mpi, launcher) in mpis() {
        let mut command = hosts.on(HEAD, launcher);
        command.args(["-n", "4"]).args(words(&hosts, mpi, 2).split(' '));
        check_record(&hosts, mpi, command);
    }
}

/// Checks that the first copy on each host records it, and the others report that and end successfully.
fn check_record(hosts: &FakeHosts, folder: &str, mut launcher: Command) {
    launcher.args([QUELL, "record", "-o", folder, "--duration", "300ms", "--sources", "off", "--cpus"]);
    let printed = success(folder, &launcher.arg(last_cpu().to_string()).output().unwrap());
    assert_eq!(printed.matches("nothing to do").count(), 2, "{printed}");
    assert_eq!(printed.matches(&format!("quell show {folder}")).count(), 1, "{printed}");
    let show = json(hosts.folder(), &["show", folder, "--json"]);
    let mut found: Vec<(&str, &str)> = Vec::new();
    for row in show["hosts"].as_array().unwrap() {
        assert_eq!(row["state"], "complete");
        found.push((row["name"].as_str().unwrap(), row["host"].as_str().unwrap()));
    }
    found.sort_unstable();
    assert_eq!(found, [("qa", "qa"), ("qb", "qb")]);
}

/// Each rank of an MPI program runs under a quell of its own: every rank runs, and has its own recording.
#[test]
fn each_copy_follows_its_own_command() {
    if !has(TOOLS) || !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return;
    }
    let _machine = machine();
    let hosts = FakeHosts::new(&HOSTS);
    for (mpi, launcher) in mpis() {
        let mut command = hosts.on(HEAD, launcher);
        command.args(["-n", "4"]).args(words(&hosts, mpi, 2).split(' '));
        command.args([
            QUELL,
            "record",
            "-q",
            "-o",
            mpi,
            "--",
            "sh",
            "-c",
            "echo ran $PMI_RANK$OMPI_COMM_WORLD_RANK",
        ]);
        let output = command.output().unwrap();
        success(mpi, &output);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        for (rank, host) in [(0, "qa"), (1, "qa"), (2, "qb"), (3, "qb")] {
            assert!(printed.contains(&format!("ran {rank}\n")), "{printed}");
            assert!(
                hosts.path(&format!("{mpi}/{host}-{rank:04}.quell/threads.parquet")).exists(),
                "{printed}"
            );
        }
    }
}

#[test]
fn slurm_starts_benchmarks_and_recorders() {
    if !has(&[TOOLS, slurm::PROGRAMS].concat()) {
        return;
    }
    let _machine = machine();
    let mut hosts = FakeHosts::new(&HOSTS);
    slurm::start(&mut hosts, &HOSTS);
    for (mpi, _) in mpis() {
        let more = ["-o", mpi, "--launcher", "srun", "--per-node", "1"];
        check_bench(&hosts, mpi, &bench(&hosts, mpi, &more).output().unwrap());
    }
    let mut srun = slurm::on_head(&hosts, "srun");
    srun.args(["-N2", "--ntasks-per-node=2", "--overcommit"]);
    check_record(&hosts, "recorded", srun);
}

/// As from `srun --pty bash`, whose step holds all CPUs of the job.
#[test]
fn slurm_starts_benchmarks_from_within_a_step() {
    let Some((mpi, _)) = has(&[TOOLS, slurm::PROGRAMS].concat()).then(mpis).and_then(|mut mpis| mpis.next())
    else {
        return;
    };
    let _machine = machine();
    let mut hosts = FakeHosts::new(&HOSTS);
    slurm::start(&mut hosts, &HOSTS);
    let bench = format!(
        "exec {QUELL} bench bsp --mpi {mpi} -n 2 --per-node 1 --launcher srun --duration 500ms --json -o inner"
    );
    let mut srun = slurm::on_head(&hosts, "srun");
    srun.args(["-N2", "-n2", "-c2", "sh", "-c", &format!("test $SLURM_PROCID != 0 || {bench}")]);
    check_bench(&hosts, "inner", &srun.output().unwrap());
}

/// Ranks on other hosts load the noise too; the document lists each with its host, as a node of its own.
#[test]
fn noise_reaches_ranks_on_other_hosts() {
    if !has(TOOLS) {
        return;
    }
    let _machine = machine();
    let hosts = FakeHosts::new(&HOSTS);
    // A period that is no multiple of a scheduler tick, which phases may be in step with.
    let model = "span = \"1s\"\n[[component]]\nname = \"beat\"\nperiodic = { period = \"1370us\" }\nduration = { constant = \"50us\" }\n";
    fs_err::write(hosts.path("noise.toml"), model).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/calls.c");
    for (mpi, launcher) in mpis() {
        let program = hosts.path(&format!("calls-{mpi}"));
        let mut compiler = Command::new(format!("mpicc.{mpi}"));
        success(mpi, &compiler.arg("-o").arg(&program).arg(&source).output().unwrap());
        let mut command = hosts.on(HEAD, QUELL);
        command.args(["replay", "noise.toml", "--json", "--", launcher, "-n", "2"]);
        command.args(words(&hosts, mpi, 1).split(' ')).arg(&program).args(["200", "100000", "barrier"]);
        tell_ucx(&mut command);
        if mpi == "openmpi" {
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
        let output = finish(&hosts, None, &mut command);
        success(mpi, &output);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let processes = document["processes"].as_array().unwrap();
        assert_eq!(processes.len(), 2, "{mpi}: {document:#}");
        for (rank, host) in HOSTS.iter().enumerate() {
            let found = &processes[rank];
            assert_eq!(
                (found["rank"].as_u64(), found["host"].as_str()),
                (Some(rank as u64), Some(*host)),
                "{mpi}"
            );
            assert!(found["burns"].as_u64() > Some(0) && found["node"] == rank as u64, "{mpi}: {found:#}");
        }
        let reported = document["warnings"].to_string();
        assert!(!reported.contains("ranks-unreported"), "{mpi}: {reported}");
    }
}

/// Checks the run of two ranks on two hosts: an archive with the counters of both ranks, and a recording of each host.
fn check_trace(hosts: &FakeHosts, folder: &str, output: &Output) {
    let printed = success(folder, output);
    assert!(String::from_utf8_lossy(&output.stdout).contains("2 ranks, 500 rounds"), "{folder}: {printed}");
    let ranks = archived::read(&hosts.path(folder));
    assert_eq!(ranks.len(), 2, "{folder}: {printed}");
    for (rank, host) in ranks.iter().zip(HOSTS) {
        assert_eq!((rank.host.as_str(), rank.allreduces), (host, 500), "{folder}: {printed}");
        assert!(rank.noise("tick") > 0, "{folder}: {printed}\n{ranks:?}");
        let show =
            json(hosts.folder(), &["show", &format!("{folder}/{host}.quell"), "--by", "source", "--json"]);
        assert_eq!(show["state"], "complete", "{folder}: {printed}");
    }
}

/// Compiles the ring for an MPI, into the folder that every host sees.
fn ring(hosts: &FakeHosts, mpi: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/ring.c");
    let mut compiler = Command::new(format!("mpicc.{mpi}"));
    success(mpi, &compiler.arg("-o").arg(hosts.path(&format!("ring-{mpi}"))).arg(&source).output().unwrap());
}

#[test]
fn each_host_of_a_traced_run_has_its_recorder() {
    if !has(TOOLS) || !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return;
    }
    let _machine = machine();
    let hosts = FakeHosts::new(&HOSTS);
    for (mpi, launcher) in mpis() {
        ring(&hosts, mpi);
        let mut command = hosts.on(HEAD, QUELL);
        command.args(["trace", "-o", mpi, "--sources", "on", "--", launcher, "-n", "2"]);
        command.args(words(&hosts, mpi, 1).split(' ')).arg(hosts.path(&format!("ring-{mpi}"))).arg("500");
        tell_ucx(&mut command);
        check_trace(&hosts, mpi, &finish(&hosts, Some(mpi), &mut command));
    }
}

#[test]
fn slurm_starts_a_traced_run() {
    let tools = [TOOLS, slurm::PROGRAMS].concat();
    if !has(&tools) || !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return;
    }
    let _machine = machine();
    let mut hosts = FakeHosts::new(&HOSTS);
    slurm::start(&mut hosts, &HOSTS);
    for (mpi, _) in mpis() {
        ring(&hosts, mpi);
        let mut command = slurm::on_head(&hosts, QUELL);
        let pmi = if mpi == "openmpi" { "--mpi=pmix" } else { "--mpi=pmi2" };
        command.args(["trace", "-o", mpi, "--sources", "on", "--", "srun", pmi, "-N2", "-n2"]);
        command.arg(hosts.path(&format!("ring-{mpi}"))).arg("500");
        check_trace(&hosts, mpi, &command.output().unwrap());
    }
}
