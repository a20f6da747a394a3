//! The other kinds of knob, each with values in every direction: units, interrupts, threads, drop-ins, steps by hand.

use super::{NONSENSE, options};
use crate::audit::{Audited, PlaceState, State, audit};
use crate::catalogue::{
    ByHandKnob, Catalogue, DropInKnob, Knob, ManualCheck, Mitigation, Property, UnitKnob,
};
use crate::fake_machine::{self as fake, Machine};
use crate::place::Place;
use crate::root::Root;
use quell_recording::parse_cpu_list;
use std::path::Path;
use std::sync::LazyLock;

/// Read once: each test audits hundreds of times.
static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(Catalogue::built_in);

/// What an audit of one mitigation finds.
pub(super) fn seen<T>(
    folder: &Path,
    of: &Mitigation,
    pid: Option<u32>,
    see: impl FnOnce(&Audited<'_>) -> T,
) -> T {
    let root = Root::at(folder).unwrap();
    let mut options = options(of);
    if pid.is_some() {
        options.pid = pid;
        options.compute = Some(parse_cpu_list("2-3,130-131").unwrap());
    }
    let audit = audit(&root, &CATALOGUE, &options, Some(std::slice::from_ref(&of.id))).unwrap();
    see(&audit.entries[0])
}

/// The first place of some kind.
pub(super) fn place(
    folder: &Path,
    of: &Mitigation,
    pid: Option<u32>,
    is: impl Fn(&Place) -> bool,
) -> Option<PlaceState> {
    seen(folder, of, pid, |one| one.places.iter().find(|state| is(&state.place)).cloned())
}

/// Calls `test` for each mitigation with knobs of a kind, on a large machine; returns how many there are.
pub(super) fn with_each<'c, K: 'c>(
    catalogue: &'c Catalogue,
    kind: impl Fn(&'c Knob) -> Option<K>,
    mut test: impl FnMut(&'c Mitigation, Vec<K>, &Machine, &Path),
) -> usize {
    let mut count = 0;
    for mitigation in catalogue.iter() {
        let knobs: Vec<K> = mitigation.knob.iter().filter_map(&kind).collect();
        if !knobs.is_empty() {
            let folder = tempfile::tempdir().unwrap();
            let machine = fake::large(folder.path());
            test(mitigation, knobs, &machine, folder.path());
            count += 1;
        }
    }
    count
}

fn unit(knob: &Knob) -> Option<&UnitKnob> {
    if let Knob::Unit(unit) = knob { Some(unit) } else { None }
}

fn drop_in(knob: &Knob) -> Option<&DropInKnob> {
    if let Knob::DropIn(file) = knob { Some(file) } else { None }
}

fn process(knob: &Knob) -> Option<Property> {
    if let Knob::Process(process) = knob { Some(process.what) } else { None }
}

fn by_hand(knob: &Knob) -> Option<&ByHandKnob> {
    if let Knob::ByHand(by_hand) = knob { Some(by_hand) } else { None }
}

fn held(knob: &Knob) -> Option<()> {
    matches!(knob, Knob::Hold(_) | Knob::Cpuset(_)).then_some(())
}

/// The names of what it moves, and whether those are interrupts.
fn movable(knob: &Knob) -> Option<(&str, bool)> {
    match knob {
        Knob::Irq(irq) => Some((&irq.matches, true)),
        Knob::KernelThread(threads) => Some((&threads.matches, false)),
        _ => None,
    }
}

#[test]
fn each_unit_knows_worse_from_better() {
    let catalogue = Catalogue::built_in();
    let count = with_each(&catalogue, unit, |mitigation, knobs: Vec<&UnitKnob>, machine, folder| {
        let id = &mitigation.id;
        let done = |words: &str| -> Vec<Option<bool>> {
            machine.units(&knobs.iter().map(|knob| (knob.name.as_str(), words)).collect::<Vec<_>>());
            let state = |knob: &&UnitKnob| {
                let mine = Place::Unit { name: knob.name.clone() };
                place(folder, mitigation, None, |one| *one == mine).map(|state| state.done)
            };
            // One of several stands for all: each is another call of a program.
            knobs.iter().take(2).map(state).collect()
        };
        for (words, expected) in [
            ("active enabled", Some(false)),
            ("activating enabled", Some(false)),
            ("inactive enabled", Some(true)),
            ("failed disabled", Some(true)),
            ("inactive masked", Some(true)),
            // Not a unit of this machine.
            ("inactive not-found", None),
            // No state of systemd's.
            ("\u{1b}[2J nan", None),
        ] {
            assert!(done(words).iter().all(|done| *done == expected), "{id}: {words:?}");
        }
        // A systemd that does not run has no units, whatever is installed.
        machine.units(&[]);
        fs_err::remove_dir(folder.join("run/systemd/system")).unwrap();
        assert!(done_without_systemd(folder, mitigation), "{id}");
    });
    assert!(count >= 15, "{count}");
}

/// Whether nothing of systemd's is found, and the reason given.
fn done_without_systemd(folder: &Path, mitigation: &Mitigation) -> bool {
    seen(folder, mitigation, None, |one| {
        let units = one.places.iter().any(|state| matches!(state.place, Place::Unit { .. }));
        let only = mitigation.knob.iter().all(|knob| matches!(knob, Knob::Unit(_)));
        let reported = one.why.as_deref().is_some_and(|why| why.contains("systemd does not run here"));
        !units && one.state != State::Applied && (!only || reported && one.state == State::NotHere)
    })
}

#[test]
fn each_drop_in_knows_worse_from_better() {
    let catalogue = Catalogue::built_in();
    let count = with_each(&catalogue, drop_in, |mitigation, knobs: Vec<&DropInKnob>, machine, folder| {
        machine.units(&[]);
        for knob in knobs {
            let program = knob.r#if.as_deref().unwrap_or("/usr/bin/true").trim_start_matches('/');
            let mine = Place::DropIn { path: knob.path.clone() };
            let state = || place(folder, mitigation, None, |one| *one == mine);
            // The made systemd is installed already.
            let installed = folder.join(program).exists();
            assert!(installed || state().is_none(), "{}: its program is not installed", knob.path);
            machine.file(program, "");
            let absent = state().unwrap();
            assert!(!absent.done, "{}: absent", knob.path);
            let want = absent.want.unwrap();
            let on_disk = folder.join(knob.path.trim_start_matches('/'));
            fs_err::create_dir_all(on_disk.parent().unwrap()).unwrap();
            fs_err::write(&on_disk, &want).unwrap();
            assert!(state().unwrap().done, "{}: {want}", knob.path);
            for bad in NONSENSE.iter().map(|&one| one.to_owned()).chain([format!("{want}#\n")]) {
                fs_err::write(&on_disk, &bad).unwrap();
                assert!(!state().unwrap().done, "{}: {bad:?}", knob.path);
            }
            fs_err::remove_file(&on_disk).unwrap();
            fs_err::create_dir(&on_disk).unwrap();
            let unread = state().unwrap();
            assert!(!unread.done && unread.why.is_some(), "{}: unreadable", knob.path);
            fs_err::remove_dir(&on_disk).unwrap();
        }
        fs_err::remove_dir(folder.join("run/systemd/system")).unwrap();
        assert!(done_without_systemd(folder, mitigation), "{}", mitigation.id);
    });
    assert!(count >= 3, "{count}");
}

/// A name of an interrupt, a thread or a process that matches.
fn name(matches: &str) -> &'static str {
    let regex = regex::Regex::new(matches).unwrap();
    let names = [
        "mlx5_comp0",
        "virtio0-input.0",
        "virtio0-inflate",
        "xhci_hcd",
        "nvidia",
        "acpi",
        "nvme0q1",
        "eth0-TxRx-0",
        "amdgpu",
        "khugepaged",
        "khungtaskd",
        "rcu_preempt",
        "hwrng",
        "jbd2/sda1-8",
        "ptlrpcd_00",
        "tuned",
        "kauditd",
        "ksoftirqd/2",
        "slurmd",
        "bash",
        "scx_lavd",
        "kswapd0",
        "ll_ping",
    ];
    let found = names.into_iter().find(|one| regex.is_match(one));
    found.unwrap_or_else(|| panic!("add a name that matches {matches}"))
}

#[test]
fn each_interrupt_and_kernel_thread_knows_worse_from_better() {
    let catalogue = Catalogue::built_in();
    let count = with_each(&catalogue, movable, |mitigation, knobs: Vec<(&str, bool)>, machine, folder| {
        let id = &mitigation.id;
        let is = |one: &Place| matches!(one, Place::Irq { .. } | Place::Thread { .. });
        let state = || place(folder, mitigation, None, is);
        for (matches, is_irq) in knobs {
            assert_eq!(state(), None, "{id}: absent");
            let own = if is_irq { "proc/irq/77" } else { "proc/77" };
            let make = |cpus: &str, fixed: bool| {
                match is_irq {
                    true => machine.irq(77, name(matches), cpus, fixed),
                    false => machine.kernel_thread(77, name(matches), cpus, fixed),
                };
            };
            let all = if is_irq { ["ffffffff"; 8].join(",") } else { "0-255".to_owned() };
            make(&all, false);
            let worse = state().unwrap();
            assert!(!worse.done && !worse.immovable, "{id}: {all}");
            for enough in [worse.want.as_deref().unwrap(), if is_irq { "1" } else { "0" }] {
                make(enough, false);
                assert!(state().unwrap().done, "{id}: {enough}");
            }
            // A list without a CPU has none outside of the wanted ones.
            for bad in NONSENSE.into_iter().filter(|bad| is_irq || !bad.is_empty()) {
                make(bad, false);
                assert!(state().is_none_or(|state| !state.done), "{id}: {bad:?}");
            }
            fs_err::remove_dir_all(folder.join(own)).unwrap();
            make(&all, true);
            assert!(state().is_some_and(|state| state.immovable && !state.done), "{id}: fixed");
            let file = folder.join(own).join(if is_irq { "smp_affinity" } else { "status" });
            fs_err::remove_file(&file).unwrap();
            fs_err::create_dir(&file).unwrap();
            assert!(state().is_none_or(|state| !state.done && state.why.is_some()), "{id}: unreadable");
            fs_err::remove_dir_all(folder.join(own)).unwrap();
        }
    });
    assert!(count >= 10, "{count}");
}

#[test]
fn each_property_of_a_process_knows_worse_from_better() {
    let catalogue = Catalogue::built_in();
    let count = with_each(&catalogue, process, |mitigation, knobs: Vec<Property>, machine, folder| {
        let id = &mitigation.id;
        let state = || place(folder, mitigation, Some(900), |one| matches!(one, Place::Thread { .. }));
        assert_eq!(state(), None, "{id}: there is no process 900");
        for property in knobs {
            machine.process(900, "solver", 1, "0-255");
            let first = state().unwrap();
            assert!(!first.done, "{id}");
            let want = first.want.unwrap();
            match property {
                Property::Affinity => {
                    machine.process(900, "solver", 1, &want);
                    assert!(state().unwrap().done, "{id}: {want}");
                    machine.process(900, "solver", 1, "2");
                    assert!(!state().unwrap().done, "{id}: fewer CPUs than the job has ranks");
                    // A launcher, or the program itself, bound each thread to a CPU of its own.
                    machine.process(900, "solver", 2, "131");
                    let first_has = |cpus: &str| {
                        for file in ["proc/900/status", "proc/900/task/900/status"] {
                            machine.file(file, &format!("Name:\tsolver\nCpus_allowed_list:\t{cpus}"));
                        }
                        seen(folder, mitigation, Some(900), |one| {
                            one.places.iter().map(|state| state.done).collect::<Vec<_>>()
                        })
                    };
                    assert_eq!(first_has("130"), [true, true], "{id}: each bound by itself");
                    assert_eq!(first_has("0-255"), [false, true], "{id}: one is free");
                    assert_eq!(first_has("131"), [false, false], "{id}: two threads on a CPU");
                }
                Property::TimerSlack => {
                    let slack = |ns: &str| {
                        for file in ["proc/900/timerslack_ns", "proc/900/task/900/timerslack_ns"] {
                            machine.file(file, ns);
                        }
                        state().unwrap().done
                    };
                    assert!(slack("50000000") && slack("50000001"), "{id}");
                    assert!(!slack("49999999") && NONSENSE.into_iter().all(|bad| !slack(bad)), "{id}");
                }
                // The made machine has no real-time tasks.
                Property::Policy => assert_eq!(want, "fifo:1"),
            }
        }
        assert!(place(folder, mitigation, None, |one| matches!(one, Place::Thread { .. })).is_none());
    });
    assert!(count >= 4, "{count}");
}

#[test]
fn what_is_done_by_hand_is_seen_or_not_known() {
    let catalogue = Catalogue::built_in();
    let texts = ["nop", "inactive", "disabled", "\"policyName\": \"static\"", "", "0", "1"];
    let count = with_each(&catalogue, by_hand, |mitigation, knobs: Vec<&ByHandKnob>, machine, folder| {
        for knob in knobs {
            let done = || {
                let todo = &knob.r#do;
                seen(folder, mitigation, None, |one| one.by_hand.iter().find(|hand| hand.todo == *todo)?.done)
            };
            match &knob.look {
                None => assert_eq!(done(), None, "{}", mitigation.id),
                Some(ManualCheck::File { path, matches }) => {
                    assert_eq!(done(), None, "{path}: absent");
                    let regex = regex::Regex::new(matches).unwrap();
                    let good = texts.into_iter().find(|one| regex.is_match(one));
                    let good = good.unwrap_or_else(|| panic!("add a text that matches {matches}"));
                    let path = path.trim_start_matches('/');
                    machine.file(path, good);
                    assert_eq!(done(), Some(true), "{path}: {good}");
                    machine.file(path, "\u{1b}[2J 99999999999999999999999999 other");
                    assert_eq!(done(), Some(false), "{path}");
                    fs_err::remove_file(folder.join(path)).unwrap();
                    fs_err::create_dir(folder.join(path)).unwrap();
                    assert_eq!(done(), None, "{path}: unreadable");
                }
                Some(ManualCheck::NoProcess { matches }) => {
                    assert_eq!(done(), Some(true), "{matches}");
                    machine.process(901, name(matches), 1, "0-3");
                    assert_eq!(done(), Some(false), "{matches}");
                }
                Some(ManualCheck::Process { matches }) => {
                    assert_eq!(seen(folder, mitigation, None, |one| one.state), State::NotHere, "{matches}");
                    machine.process(901, name(matches), 1, "0-3");
                    assert_eq!(done(), None, "{matches}");
                    assert_eq!(
                        seen(folder, mitigation, None, |one| one.state),
                        State::CannotTell,
                        "{matches}"
                    );
                }
                Some(ManualCheck::Irq { matches }) => {
                    machine.irq(78, name(matches), "1", false);
                    assert_eq!(done(), None, "{matches}");
                }
                Some(ManualCheck::SlurmCores) => {
                    for (nodes, expected) in [
                        ("NodeName=large CPUs=4", Some(false)),
                        ("NodeName=large CPUs=4 CpuSpecList=0", Some(true)),
                        ("NodeName=other CPUs=4 CpuSpecList=0", None),
                        ("NodeName=large CPUs=4\nNodeName=other CPUs=4 CpuSpecList=0", Some(false)),
                    ] {
                        machine.file("etc/slurm/slurm.conf", nodes);
                        assert_eq!(done(), expected, "{nodes}");
                    }
                }
                Some(ManualCheck::BannedCpus { path }) => {
                    let path = path.trim_start_matches('/');
                    assert_eq!(done(), None, "{path}: absent");
                    for (text, expected) in [
                        ("IRQBALANCE_BANNED_CPULIST=2-3", Some(true)),
                        ("IRQBALANCE_BANNED_CPULIST=2", Some(false)),
                        ("IRQBALANCE_BANNED_CPUS=c", Some(true)),
                        ("IRQBALANCE_BANNED_CPULIST=all", None),
                        ("", Some(false)),
                    ] {
                        machine.file(path, text);
                        assert_eq!(done(), expected, "{path}: {text}");
                    }
                    fs_err::remove_file(folder.join(path)).unwrap();
                    fs_err::create_dir(folder.join(path)).unwrap();
                    assert_eq!(done(), None, "{path}: unreadable");
                    fs_err::remove_dir(folder.join(path)).unwrap();
                }
                Some(ManualCheck::Steal) => {
                    machine.file("proc/stat", "cpu  10 0 10 1000 0 0 0 500 0 0");
                    assert_eq!(done(), Some(false));
                }
            }
        }
    });
    assert!(count >= 25, "{count}");
}

#[test]
fn what_a_made_machine_cannot_hold_is_not_applied() {
    let catalogue = Catalogue::built_in();
    let count = with_each(&catalogue, held, |mitigation, _, _, folder| {
        assert!(seen(folder, mitigation, None, |one| one.state) != State::Applied, "{}", mitigation.id);
    });
    assert!(count >= 4, "{count}");
}

/// Each kind of knob has a test in this file or, for kernel files, in the one above.
#[test]
fn every_entry_has_a_direction() {
    let is_tested = |knob: &Knob| match knob {
        Knob::File(_) | Knob::Irq(_) | Knob::KernelThread(_) | Knob::Process(_) | Knob::Unit(_) => true,
        Knob::Hold(_) | Knob::Cpuset(_) | Knob::Boot(_) | Knob::DropIn(_) | Knob::ByHand(_) => true,
    };
    let catalogue = Catalogue::built_in();
    assert!(catalogue.iter().all(|one| one.knob.iter().any(is_tested)));
    assert!(catalogue.iter().count() >= 130);
}
