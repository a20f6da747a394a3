//! What a verb gives up before it opens files that others made: a reader with a flaw can then write nowhere but next to the verb's output.
//!
//! Landlock (Linux 5.13) and a seccomp filter hold for all threads of the process and cannot be undone. A kernel that lacks one of them
//! runs the verb without it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError,
    Scope, path_beneath_rules,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use crate::args::{GoalVerb, SweepArgs, Verb};
use crate::steps::archive_page;
use crate::sweep;

/// A system call of Linux 6.6 that not every version of `libc` knows; it has one number on all architectures.
const FCHMODAT2: libc::c_long = 452;

/// System calls that no reader needs and that reach beyond the process: programs, other processes, the network, the machine itself, and
/// modes and owners of files, which Landlock does not restrict.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_socket,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setxattr,
    libc::SYS_open_by_handle_at,
];

/// Confines the process to what its verb needs, if the verb only reads files and writes some. Must precede the first thread.
pub fn to(verb: &Verb) {
    let Some(outputs) = outputs(verb) else { return };
    let folders: Vec<PathBuf> = outputs.iter().flat_map(|output| folders(output)).collect();
    // Kernels differ in what they offer; what one does not offer is no error of the verb.
    let _ = allow_writes_in(&folders);
    let _ = refuse_calls();
}

/// What the verb writes; nothing if it also starts programs, records, or changes the machine.
fn outputs(verb: &Verb) -> Option<Vec<PathBuf>> {
    let written = match verb {
        Verb::Show(_) => vec![],
        Verb::Compare(args) => vec![args.html.clone()],
        Verb::Predict(args) => vec![dataset(args.sweep.as_deref(), &args.sweeping)],
        Verb::Advise(args) => {
            vec![args.html.clone(), args.binding.clone(), dataset(args.sweep.as_deref(), &args.sweeping)]
        }
        Verb::Simulate(args) => vec![args.timeline.clone(), dataset(args.sweep.as_deref(), &args.sweeping)],
        Verb::Track(args) => vec![args.html.clone(), args.timeline.clone(), args.goal.clone()],
        Verb::Convert(args) => vec![args.output.clone()],
        Verb::Report(args) => match &args.output {
            Some(output) => vec![Some(output.clone())],
            // The page of a study is in its folder.
            None => args
                .recordings
                .iter()
                .take(1)
                .flat_map(|first| [archive_page::default_path(first), first.join("page")].map(Some))
                .collect(),
        },
        Verb::Goal(args) => match &args.verb {
            GoalVerb::Convert(args) => vec![Some(args.target.output.clone())],
            GoalVerb::Make(args) => vec![Some(args.target.output.clone())],
            GoalVerb::Check(_) | GoalVerb::List(_) => vec![],
        },
        _ => return None,
    };
    Some(written.into_iter().flatten().collect())
}

/// The folder of a sweep's dataset.
fn dataset(plan: Option<&Path>, sweeping: &SweepArgs) -> Option<PathBuf> {
    sweeping.output.clone().or_else(|| plan.map(sweep::default_folder))
}

/// The folders in which an output is made: its own, and that of what it links to.
fn folders(output: &Path) -> impl Iterator<Item = PathBuf> {
    let linked = output.canonicalize().ok();
    let parent = |path: &Path| match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    [Some(parent(output)), linked.as_deref().map(parent)].into_iter().flatten()
}

/// Allows writing in these folders only, and neither programs, nor TCP, nor signals and sockets of others.
fn allow_writes_in(folders: &[PathBuf]) -> Result<(), RulesetError> {
    let abi = ABI::V6;
    Ruleset::default()
        .handle_access(AccessFs::from_write(abi) | AccessFs::Execute)?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?
        .add_rules(path_beneath_rules(folders, AccessFs::from_write(abi)))?
        .restrict_self()
        .map(drop)
}

fn refuse_calls() -> Result<(), seccompiler::Error> {
    let calls: BTreeMap<i64, Vec<_>> = REFUSED.iter().map(|&call| (call, vec![])).collect();
    let architecture = std::env::consts::ARCH.try_into()?;
    let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let filter: BpfProgram =
        SeccompFilter::new(calls, SeccompAction::Allow, refused, architecture)?.try_into()?;
    seccompiler::apply_filter(&filter)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::UdpSocket;
    use std::process::Command;

    use clap::Parser as _;
    use fs_err as fs;

    use super::*;
    use crate::args::Args;

    /// What `act` returns in a thread that is confined as the command line's verb is.
    fn confined<T: Send>(words: &[&str], act: impl FnOnce() -> T + Send) -> T {
        let args = Args::try_parse_from([&["quell"], words].concat()).unwrap();
        std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    to(&args.verb);
                    act()
                })
                .join()
                .unwrap()
        })
    }

    fn refused<T>(result: io::Result<T>) -> bool {
        result.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    }

    fn has_landlock() -> bool {
        // SAFETY: with a null pointer and the flag for the version, the call reads and writes no memory.
        let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0, 0, 1) };
        version > 0 || {
            quell_testing::skip("this kernel has no Landlock");
            false
        }
    }

    #[test]
    fn a_reader_writes_where_its_output_is_and_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        for folder in ["out", "elsewhere"] {
            fs::create_dir(place(folder)).unwrap();
        }
        fs::write(place("elsewhere/old"), "old").unwrap();
        std::os::unix::fs::symlink(place("elsewhere/linked"), place("out/link")).unwrap();
        if !has_landlock() {
            return;
        }
        let output = place("out/a.csv");
        confined(&["convert", "in.dat", output.to_str().unwrap()], || {
            fs::write(place("out/.draft"), "new").unwrap();
            fs::rename(place("out/.draft"), &output).unwrap();
            assert_eq!(fs::read_to_string(place("elsewhere/old")).unwrap(), "old");
            assert!(refused(fs::write(place("elsewhere/old"), "new")));
            assert!(refused(fs::write(place("elsewhere/new"), "new")));
            assert!(refused(fs::write(place("out/link"), "new")));
            assert!(refused(fs::remove_file(place("elsewhere/old"))));
            assert!(refused(fs::rename(place("elsewhere/old"), place("out/old"))));
            let permissions = fs::metadata(place("elsewhere/old")).unwrap().permissions();
            assert!(refused(fs::set_permissions(place("elsewhere/old"), permissions)));
            assert!(refused(std::os::unix::fs::chown(place("elsewhere/old"), None, None)));
        });
        confined(&["show", "in.quell"], || assert!(refused(fs::write(&output, "new"))));
    }

    #[test]
    fn a_reader_starts_no_program_and_reaches_no_network() {
        confined(&["show", "in.quell"], || {
            assert!(refused(Command::new("/bin/true").status()));
            assert!(refused(UdpSocket::bind("127.0.0.1:0")));
            // SAFETY: signal 0 is only a check.
            assert_eq!(unsafe { libc::kill(libc::getppid(), 0) }, -1);
        });
        confined(&["doctor"], || assert!(Command::new("/bin/true").status().unwrap().success()));
    }

    /// A dataset, a page and a timeline are made where the verbs say, also through a link.
    #[test]
    fn each_output_has_its_folder() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        fs::create_dir(at("far")).unwrap();
        fs::write(at("far/page.html"), "old").unwrap();
        std::os::unix::fs::symlink(at("far/page.html"), at("page.html")).unwrap();
        let page = at("page.html");
        let Args { verb, .. } =
            Args::try_parse_from(["quell", "predict", "--sweep", "far/plan.toml"]).unwrap();
        assert_eq!(outputs(&verb).unwrap(), [PathBuf::from("plan.sweep")], "in the current directory");
        let lines: [&[&str]; 4] = [
            &["compare", "a", "b", "--html", &page],
            &["predict", "--sweep", "plan.toml", "--output", &at("far/set")],
            &["simulate", "a.goal", "--timeline", &page],
            &["track", "run", "--html", &page],
        ];
        for words in lines {
            let Args { verb, .. } = Args::try_parse_from([&["quell"], words].concat()).unwrap();
            let outputs = outputs(&verb).unwrap();
            let folders: Vec<_> = outputs.iter().flat_map(|output| folders(output)).collect();
            assert!(folders.contains(&dir.path().join("far")), "{words:?}: {folders:?}");
        }
    }
}
