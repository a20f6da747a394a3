#![allow(clippy::unwrap_used, reason = "a test may")]
use std::path::Path;

use super::*;
use crate::fake_machine::{self as fake, Machine};

fn on(
    make: fn(&Path) -> Machine,
    change: impl FnOnce(&Machine),
    options: &AuditOptions,
    id: &str,
) -> (State, String) {
    let folder = tempfile::tempdir().unwrap();
    change(&make(folder.path()));
    let root = Root::at(folder.path()).unwrap();
    let catalogue = Catalogue::built_in();
    let audit = audit(&root, &catalogue, options, Some(&[id.to_owned()])).unwrap();
    let one = audit.entries.first().unwrap();
    (one.state, one.why.clone().unwrap_or_default())
}

fn plain(make: fn(&Path) -> Machine, id: &str) -> (State, String) {
    on(make, |_| {}, &AuditOptions::default(), id)
}

#[test]
fn states_say_why() {
    for (make, id, state, part) in [
        (fake::large as fn(&Path) -> Machine, "vm-stat-interval", State::NotApplied, ""),
        (fake::large, "nmi-watchdog", State::NotHere, "its mode lets no one write it"),
        (fake::large, "governor-performance", State::NotHere, "is not there"),
        (fake::large, "smt-sibling-affinity", State::CannotTell, "give --pid"),
        (fake::large, "isolcpus", State::NotApplied, "this boot has no `isolcpus`"),
        (fake::holes, "isolcpus", State::NotApplied, "not `domain,managed_irq,6-7`"),
        (fake::large, "lpar-dedicated", State::Applied, "no hypervisor"),
        (fake::power, "lpar-dedicated", State::NotApplied, "shares its processors"),
    ] {
        let (seen, why) = plain(make, id);
        assert_eq!(seen, state, "{id}: {why}");
        assert!(why.contains(part), "{id}: {why}");
    }
}

#[test]
fn dependents_are_those_that_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let machine = fake::large(folder.path());
    machine
        .file("sys/block/nvme9n1/queue/rotational", "0")
        .file("sys/block/nvme9n1/queue/scheduler", "[mq-deadline] none");
    for name in ["nr_requests", "iosched/read_expire", "iosched/async_depth", "nomerges"] {
        machine.file(&format!("sys/block/nvme9n1/queue/{name}"), "1");
    }
    let read_only = folder.path().join("sys/block/nvme9n1/queue/iosched/async_depth");
    fs_err::set_permissions(read_only, std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
    let root = Root::at(folder.path()).unwrap();
    let catalogue = Catalogue::built_in();
    let audit =
        audit(&root, &catalogue, &AuditOptions::default(), Some(&["io-scheduler".to_owned()])).unwrap();
    let places = &audit.entries.first().unwrap().places;
    let of = |name: &str| {
        let path = format!("/sys/block/{name}/queue/scheduler");
        let mut found = places.iter().filter(|one| one.place.to_string() == path);
        found.next().unwrap().dependents.clone()
    };
    let queue = "/sys/block/nvme9n1/queue";
    assert_eq!(of("nvme9n1"), [format!("{queue}/iosched/read_expire"), format!("{queue}/nr_requests")]);
}

#[test]
fn a_kernel_built_without_an_option_does_not_have_it() {
    let without = |machine: &Machine| {
        machine.file("boot/config-6.12.9-fake", "CONFIG_SMP=y\n# CONFIG_NO_HZ_FULL is not set");
    };
    let (state, why) = on(fake::large, without, &AuditOptions::default(), "nohz-full");
    assert!(why.contains("CONFIG_NO_HZ_FULL"), "{why}");
    assert_eq!(state, State::NotHere);
}

#[test]
fn a_kernel_from_before_an_option_of_its_configuration_is_asked_for_what_it_knows() {
    let options = AuditOptions {
        compute: Some(quell_recording::parse_cpu_list("2-3").unwrap()),
        ..AuditOptions::default()
    };
    for (release, id, line, expected, part) in [
        ("3.10.0-1160", "isolcpus", "ro isolcpus=2-3", State::Applied, ""),
        ("3.10.0-1160", "isolcpus", "ro isolcpus=2", State::NotApplied, "not `2-3`"),
        ("5.4.0", "isolcpus", "ro isolcpus=domain,2-3", State::NotHere, "built without CONFIG_CPU_ISOLATION"),
        ("3.10.0-1160", "managed-irq", "ro isolcpus=2-3", State::NotHere, "Linux 5.6 and later know"),
    ] {
        let old = |machine: &Machine| {
            machine.file("proc/sys/kernel/osrelease", release).file("proc/cmdline", line);
            machine.file(&format!("boot/config-{release}"), "CONFIG_SMP=y");
            let isolated = line.rsplit('=').next().unwrap().trim_start_matches("domain,");
            machine.file("sys/devices/system/cpu/isolated", isolated);
        };
        let (state, why) = on(fake::large, old, &options, id);
        assert_eq!(state, expected, "{release} {id}: {why}");
        assert!(why.contains(part), "{release} {id}: {why}");
    }
}

#[test]
fn a_value_of_the_users_goes_before_the_catalogues() {
    let options = |value: &str| AuditOptions {
        values: [("vm-stat-interval".to_owned(), value.to_owned())].into(),
        ..AuditOptions::default()
    };
    assert_eq!(on(fake::large, |_| {}, &options("1"), "vm-stat-interval").0, State::Applied);
    let (state, why) = on(fake::large, |_| {}, &options("1\n2"), "vm-stat-interval");
    assert_eq!(state, State::CannotTell);
    assert!(why.contains("--set"), "{why}");
}

#[test]
fn an_unknown_id_is_refused_with_what_was_meant() {
    let folder = tempfile::tempdir().unwrap();
    fake::large(folder.path());
    let root = Root::at(folder.path()).unwrap();
    let reported = audit(&root, &Catalogue::built_in(), &AuditOptions::default(), Some(&["isolcpu".into()]))
        .unwrap_err();
    assert!(reported.contains("did you mean `isolcpus`"), "{reported}");
}

#[test]
fn all_of_the_catalogue_is_looked_at_on_every_machine_without_a_write() {
    let machines: [fn(&Path) -> Machine; 6] =
        [fake::large, fake::power, fake::partitioned, fake::services, fake::holes, fake::interrupts];
    let catalogue = Catalogue::built_in();
    for make in machines {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path());
        let root = Root::at(folder.path()).unwrap();
        let before = newest(folder.path());
        let audit = audit(&root, &catalogue, &AuditOptions::default(), None).unwrap();
        assert_eq!(audit.entries.len(), catalogue.iter().count());
        for one in audit.entries.iter().filter(|one| matches!(one.state, State::NotHere | State::CannotTell))
        {
            assert!(one.why.is_some(), "{} on {}", one.mitigation.id, audit.facts.host);
        }
        assert_eq!(newest(folder.path()), before);
    }
}

#[test]
fn a_knob_of_each_cpu_is_of_those_that_compute_wherever_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let machine = fake::services(folder.path());
    for cpu in 0..4 {
        machine.file(&format!("sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime"), "50000000");
    }
    let root = Root::at(folder.path()).unwrap();
    let catalogue = Catalogue::built_in();
    let compute = quell_recording::parse_cpu_list("2-3").unwrap();
    let options = AuditOptions { compute: Some(compute), ..AuditOptions::default() };
    let audit = audit(&root, &catalogue, &options, Some(&["fair-server".to_owned()])).unwrap();
    let places: Vec<String> =
        audit.entries[0].places.iter().map(|place_state| place_state.place.to_string()).collect();
    let path = |cpu| format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
    assert_eq!(places, [path(2), path(3)]);
}

/// What cannot be seen says why: with the command that mounts a file system, or with what is missing.
#[test]
fn what_is_not_mounted_is_neither_absent_nor_applied() {
    for (id, folder, kind) in [
        ("fair-server", "sys/kernel/debug", "debugfs"),
        ("preempt-mode", "sys/kernel/debug", "debugfs"),
        ("base-slice", "sys/kernel/debug", "debugfs"),
        ("migration-cost", "sys/kernel/debug", "debugfs"),
        ("leftover-tracing", "sys/kernel/tracing", "tracefs"),
    ] {
        let empty = |machine: &Machine| {
            machine.file(&format!("{folder}/x"), "").remove(&format!("{folder}/x"));
        };
        let (state, why) = on(fake::large, empty, &AuditOptions::default(), id);
        assert_eq!(state, State::NotMounted, "{id}: {why}");
        assert!(why.contains(&format!("mount -t {kind} {kind} /{folder}")), "{id}: {why}");
        // A kernel without it has no folder; one that is mounted has files, if not this one.
        for without in [false, true] {
            let change = |machine: &Machine| {
                if without {
                    machine.file(&format!("{folder}/x"), "");
                }
            };
            let (state, why) = on(fake::large, change, &AuditOptions::default(), id);
            assert_eq!(state, State::NotHere, "{id}: {why}");
        }
    }
}

#[test]
fn what_a_machine_lacks_altogether_is_not_here() {
    let no_systemd = |machine: &Machine| {
        for program in ["usr/bin/journalctl", "usr/bin/systemctl", "usr/sbin/chronyd", "run/utmp"] {
            machine.file(program, "");
        }
    };
    for (id, part) in [
        ("journald", "systemd does not run here"),
        ("time-sync", "systemd does not run here"),
        ("systemd-cpuaffinity", "systemd does not run here"),
        ("timers-maintenance", "systemd does not run here"),
        ("irqbalance-off", "systemd does not run here"),
        ("fs-journal-lustre", "no kernel thread is named like"),
    ] {
        let (state, why) = on(fake::large, no_systemd, &AuditOptions::default(), id);
        assert_eq!(state, State::NotHere, "{id}: {why}");
        assert!(why.contains(part), "{id}: {why}");
    }
    // These CPUs have no sibling threads, so that their first threads are all of them.
    let (state, why) = plain(fake::interrupts, "irq-thread0");
    assert_eq!(state, State::NotHere, "{why}");
    assert!(why.contains("more than one hardware thread"), "{why}");
}

#[test]
fn a_limit_in_bytes_counts_as_the_share_of_memory_that_it_is() {
    let with = |bytes: &'static str, memory: &'static str| {
        move |machine: &Machine| {
            machine.file("proc/sys/vm/dirty_writeback_centisecs", "1500");
            machine.file("proc/sys/vm/dirty_background_ratio", "0");
            machine.file("proc/sys/vm/dirty_background_bytes", bytes);
            machine.file("proc/meminfo", memory);
        }
    };
    let (small, large) = ("MemTotal:       10000000 kB", "nonsense");
    for (bytes, memory, expected) in [
        ("307200000", small, State::Applied),
        ("307200001", small, State::Partial),
        ("99999999999999999999999999999999999999999", small, State::Partial),
        ("0", small, State::Applied),
        ("nan", small, State::Partial),
        ("307200000", large, State::Partial),
    ] {
        let (state, why) = on(fake::large, with(bytes, memory), &AuditOptions::default(), "dirty-writeback");
        assert_eq!(state, expected, "{bytes}: {why}");
    }
}

#[test]
fn an_array_of_limits_is_done_if_each_of_them_is() {
    let folder = tempfile::tempdir().unwrap();
    let machine = fake::large(folder.path());
    let path = "sys/module/ipmi_si/parameters/kipmid_max_busy_us";
    let root = Root::at(folder.path()).unwrap();
    let catalogue = Catalogue::built_in();
    for (now, want, done) in [
        ("100,100", "100,100", true),
        ("50,100", "100,100", true),
        ("100,0", "100,100", false),
        ("200,100", "100,100", false),
        ("100", "100", true),
        ("", "100", false),
    ] {
        machine.file(path, now);
        let audit = audit(&root, &catalogue, &AuditOptions::default(), Some(&["kipmid".to_owned()])).unwrap();
        let place_state = audit.entries[0].places.first().unwrap();
        assert_eq!((place_state.want.as_deref(), place_state.done), (Some(want), done), "{now}");
    }
}

#[test]
fn what_is_kept_at_boot_is_the_chosen_word() {
    let never = |machine: &Machine| {
        machine.file("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
    };
    let folder = tempfile::tempdir().unwrap();
    never(&fake::large(folder.path()));
    let root = Root::at(folder.path()).unwrap();
    let catalogue = Catalogue::built_in();
    let audit = audit(&root, &catalogue, &AuditOptions::default(), Some(&["thp".to_owned()])).unwrap();
    let text = audit.entries[0].lasting.first().unwrap().want.clone().unwrap();
    assert!(text.ends_with("/enabled - - - - never\n"), "{text}");
}

#[test]
fn a_clock_that_is_as_good_stays_and_the_counter_must_be_offered() {
    let clocks = |current: &'static str, offered: &'static str| {
        move |machine: &Machine| {
            let folder = "sys/devices/system/clocksource/clocksource0";
            machine.file(&format!("{folder}/current_clocksource"), current);
            machine.file(&format!("{folder}/available_clocksource"), offered);
        }
    };
    for (current, offered, expected) in [
        ("kvm-clock", "kvm-clock tsc acpi_pm ", State::Applied),
        ("hyperv_clocksource_tsc_page", "tsc hyperv_clocksource_tsc_page acpi_pm", State::Applied),
        ("hpet", "tsc hpet acpi_pm ", State::NotApplied),
        ("hpet", "hpet acpi_pm ", State::NotHere),
        ("hpet", "hpet tsc-early ", State::NotHere),
    ] {
        let (state, why) =
            on(fake::large, clocks(current, offered), &AuditOptions::default(), "clocksource-select");
        assert_eq!(state, expected, "{current} of {offered}: {why}");
    }
}

/// A machine with one of quell's options staged, which boots with another value.
#[test]
fn an_option_from_elsewhere_is_replaced_by_hand_and_one_of_quells_is_staged_again() {
    let options = AuditOptions {
        compute: Some(quell_recording::parse_cpu_list("2-3").unwrap()),
        ..AuditOptions::default()
    };
    let seen = |id: &str, line: &str, staged: Option<&str>, btime: u64| {
        let folder = tempfile::tempdir().unwrap();
        let machine = fake::large(folder.path());
        machine.file("proc/cmdline", line).file("sys/devices/system/cpu/isolated", "8-15");
        machine.file("sys/devices/system/cpu/nohz_full", "(null)");
        let built = ["NO_HZ_FULL", "CPU_ISOLATION", "INTEL_IDLE", "ACPI_PROCESSOR"];
        let built: Vec<String> = built.iter().map(|name| format!("CONFIG_{name}=y")).collect();
        machine.file("boot/config-6.12.9-fake", &built.join("\n"));
        machine.file("proc/stat", &format!("cpu  10 0 10 1000 0 0 0 0 0 0\nbtime {btime}"));
        if let Some(word) = staged {
            let text = format!(
                "# quell: {id}; removed by `quell tune revert`\nGRUB_CMDLINE_LINUX=\"${{GRUB_CMDLINE_LINUX}} {word}\""
            );
            machine.file(&format!("etc/default/grub.d/90-quell-{id}.cfg"), &text);
        }
        let root = Root::at(folder.path()).unwrap();
        let catalogue = Catalogue::built_in();
        let audit = audit(&root, &catalogue, &options, Some(&[id.to_owned()])).unwrap();
        let one = &audit.entries[0];
        let todo: Vec<String> = one.by_hand.iter().map(|hand| hand.todo.clone()).collect();
        let place_state = one.places.first();
        let why = place_state.and_then(|state| state.why.clone()).unwrap_or_default();
        (one.state, todo.join("; "), place_state.is_some(), why)
    };
    let (long_ago, tomorrow) = (1, 9_999_999_999);
    let by_hand = |words: &str| {
        format!(
            "replace {words} where it is set: in the configuration of your boot loader; or boot once, if quell had set it and was reverted since"
        )
    };
    let wanted = "isolcpus=domain,managed_irq,2-3";
    // From elsewhere.
    let (state, todo, staged, _) = seen("isolcpus", "ro isolcpus=8-15", None, long_ago);
    assert_eq!((state, staged), (State::NotApplied, false));
    assert_eq!(todo, by_hand(&format!("`isolcpus=8-15` by `{wanted}`")));
    // From elsewhere, and quell's own before it or after it.
    for line in [format!("ro {wanted} isolcpus=8-15"), format!("ro isolcpus=8-15 {wanted}")] {
        let (state, todo, staged, _) = seen("isolcpus", &line, Some(wanted), tomorrow);
        assert_eq!((state, staged), (State::NotApplied, false), "{line}");
        assert_eq!(todo, by_hand(&format!("`isolcpus=8-15` by `{wanted}`")), "{line}");
    }
    // What the last boot had of quell's own.
    let (_, todo, staged, why) =
        seen("isolcpus", "ro isolcpus=domain,managed_irq,8-15", Some(wanted), long_ago);
    assert_eq!((&*todo, staged, &*why), ("", true, "staged already: takes effect after the next boot"));
    // A boot did not bring it.
    let (_, todo, staged, why) = seen("isolcpus", "ro", Some(wanted), tomorrow);
    assert!(todo.is_empty() && staged && why.contains("not in force"), "{todo} {why}");
    // The kernel refuses what the command line has: it shows other CPUs.
    let (state, todo, staged, _) = seen("nohz-full", "ro nohz_full=2-3", None, long_ago);
    assert_eq!((state, staged), (State::NotApplied, false));
    assert_eq!(todo, "look in `dmesg` for the reason why the kernel does not do `nohz_full=2-3`");
    // The last value counts, and is not quell's.
    let (_, todo, staged, _) = seen("skew-tick", "ro skew_tick=1 skew_tick=0", Some("skew_tick=1"), tomorrow);
    assert_eq!((&*todo, staged), (&*by_hand("`skew_tick=0` by `skew_tick=1`"), false));
    // Of two options, the one from elsewhere is not staged.
    let (_, todo, staged, _) = seen("max-cstate", "ro processor.max_cstate=9", None, long_ago);
    assert_eq!((&*todo, staged), (&*by_hand("`processor.max_cstate=9` by `processor.max_cstate=1`"), true));
    let two = Some("intel_idle.max_cstate=1");
    let (_, todo, staged, why) = seen("max-cstate", "ro processor.max_cstate=9", two, long_ago);
    assert_eq!((&*todo, staged), (&*by_hand("`processor.max_cstate=9` by `processor.max_cstate=1`"), true));
    assert!(why.starts_with("staged already"), "{why}");
}

#[test]
fn a_later_file_of_systemds_with_other_values_is_to_be_changed_by_hand() {
    let options = AuditOptions {
        compute: Some(quell_recording::parse_cpu_list("2-3").unwrap()),
        ..AuditOptions::default()
    };
    for (id, folder, text, changed) in [
        ("journald", "journald.conf.d", "[Journal]\nStorage=persistent", true),
        ("journald", "journald.conf.d", "[Journal]\nStorage = volatile\nSplitMode=none", false),
        ("journald", "journald.conf.d", "[Journal]\n#Storage=persistent\nStorage=", false),
        ("systemd-cpuaffinity", "system.conf.d", "[Manager]\nCPUAffinity=0-3", true),
        ("systemd-cpuaffinity", "system.conf.d", "[Manager]\nCPUAffinity=\nCPUAffinity=0 1", false),
        ("systemd-cpuaffinity", "system.conf.d", "[Manager]\nCPUAffinity=2-3\nCPUAffinity=0", true),
        ("systemd-cpuaffinity", "system.conf.d", "[Manager]\nCPUAffinity=", true),
        ("systemd-cpuaffinity", "system.conf.d", "[Service]\nCPUAffinity=0-3", false),
        ("time-sync", "system/chronyd.service.d", "[Service]\nCPUAffinity=2", true),
    ] {
        for (at, counts) in [
            (format!("etc/systemd/{folder}/99-site.conf"), true),
            (format!("usr/lib/systemd/{folder}/zz.conf"), true),
            (format!("etc/systemd/{folder}/10-early.conf"), false),
            (format!("etc/systemd/{folder}/99-site.txt"), false),
        ] {
            let made = tempfile::tempdir().unwrap();
            let machine = fake::services(made.path());
            for program in ["usr/bin/journalctl", "usr/sbin/chronyd"] {
                machine.file(program, "");
            }
            machine.file(&at, text);
            let root = Root::at(made.path()).unwrap();
            let catalogue = Catalogue::built_in();
            let audit = audit(&root, &catalogue, &options, Some(&[id.to_owned()])).unwrap();
            let one = &audit.entries[0];
            let todo: Vec<&str> = one.by_hand.iter().map(|hand| &*hand.todo).collect();
            let named = todo.iter().any(|todo| todo.ends_with(&format!("from /{at}")));
            assert_eq!(
                (named, todo.len()),
                (changed && counts, usize::from(named)),
                "{at}: {text}: {todo:?}"
            );
        }
    }
}

/// Modification time of the newest of all files and folders.
fn newest(folder: &Path) -> std::time::SystemTime {
    let entries = fs_err::read_dir(folder).unwrap().map(Result::unwrap);
    let of = |entry: fs_err::DirEntry| {
        let facts = entry.metadata().unwrap();
        if facts.is_dir() {
            newest(&entry.path()).max(facts.modified().unwrap())
        } else {
            facts.modified().unwrap()
        }
    };
    entries.map(of).max().unwrap_or(std::time::UNIX_EPOCH)
}

/// The real state of this machine, printed with `--nocapture`.
#[test]
fn this_machine_is_looked_at() {
    let catalogue = Catalogue::built_in();
    let audit = audit(&Root::system(), &catalogue, &AuditOptions::default(), None).unwrap();
    assert_eq!(audit.entries.len(), catalogue.iter().count());
    if std::env::var_os("QUELL_SHOW_AUDIT").is_some() {
        for one in &audit.entries {
            let why = one.why.as_deref().unwrap_or("");
            let _ = std::io::Write::write_fmt(
                &mut std::io::stdout(),
                format_args!("{:?}\t{}\t{} places\t{why}\n", one.state, one.mitigation.id, one.places.len()),
            );
        }
    }
}
