//! A boot between a plan and its revert.

use super::*;
use crate::journal::{Begin, Group, Intent, Journal, Record, VERSION};

#[test]
fn after_a_boot_memory_is_left_alone() {
    let (folder, root, plan) = two();
    run(&root, &plan).unwrap();
    put(folder.path(), BOOT, "boot-2\n");
    put(folder.path(), A, "99\n");
    assert_eq!(status(&root).unwrap().0[0].stage, Stage::Rebooted);
    assert!(back(&root).is_whole());
    assert_eq!(root.read(A).unwrap(), "99\n");
    assert_eq!(root.read(B).unwrap(), "never", "not even what still stands by chance");
}

#[test]
fn what_a_boot_sets_anew_by_our_own_file_stands_and_is_given_back() {
    let (folder, root, mut plan) = two();
    fs::create_dir_all(folder.path().join("etc/sysctl.d")).unwrap();
    let path = "/etc/sysctl.d/90-quell-test.conf";
    let text = "# quell: test\nvm.a = 20\n";
    plan.writes.push(Write { place: Place::DropIn { path: path.into() }, ..write(path, "absent", text) });
    run(&root, &plan).unwrap();
    assert_eq!(root.read(path).unwrap(), text);
    put(folder.path(), BOOT, "boot-2\n");
    put(folder.path(), B, "always [madvise] never\n");
    assert_eq!(status(&root).unwrap().0[0].stage, Stage::Applied);
    let standing: Vec<_> = verify(&root).unwrap().iter().map(|one| one.standing).collect();
    assert_eq!(standing, [SettingState::Ok, SettingState::Drifted, SettingState::Ok]);
    assert!(back(&root).is_whole());
    assert_eq!(root.read(A).unwrap(), "1\n");
    assert!(!root.has(path));
}

/// The boot, the value then, whether an earlier plan wrote it, and whether it stays.
#[test]
fn what_only_a_file_for_the_boot_sets_is_reported_to_stay() {
    for (boot, now, earlier, stays) in [
        ("boot-1\n", "20\n", false, true),
        ("boot-2\n", "20\n", false, true),
        ("boot-2\n", "1\n", false, false),
        ("boot-1\n", "20\n", true, false),
        ("boot-2\n", "20\n", true, true),
    ] {
        let (folder, root, both) = two();
        fs::create_dir_all(folder.path().join("etc/sysctl.d")).unwrap();
        if earlier {
            run(&root, &plan(vec![both.writes[0].clone()])).unwrap();
        }
        put(folder.path(), A, "20\n");
        let path = "/etc/sysctl.d/90-quell-test.conf";
        let place = Place::DropIn { path: path.into() };
        run(&root, &plan(vec![Write { place, ..write(path, "absent", "# quell: test\nvm.a = 20\n") }]))
            .unwrap();
        put(folder.path(), BOOT, boot);
        put(folder.path(), A, now);
        let reverted = back(&root);
        assert!(reverted.is_whole(), "{reverted:?}");
        let found: Vec<&str> = reverted.stays.iter().map(|one| one.place.as_str()).collect();
        assert_eq!(found, if stays { vec![A] } else { vec![] }, "{boot} {now} {earlier}");
    }
}

/// The journal of a plan with a group, as the kernel changes its files: a limit in bytes became 0 with the ratio, and another limit stayed.
fn limits(root: &Root, files: [&str; 3]) {
    let group = |values: [&str; 3]| -> Group {
        files.iter().zip(values).map(|(file, value)| ((*file).to_owned(), format!("{value}\n"))).collect()
    };
    let drop_in = "/etc/sysctl.d/90-quell-test.conf";
    let paths = files.map(str::to_owned).to_vec();
    let writes = [
        Write { group: paths, ..write(files[1], "0\n", "5") },
        Write {
            place: Place::DropIn { path: drop_in.into() },
            ..write(drop_in, "absent", "# quell: test\nx = 5\n")
        },
    ];
    let intent = |(n, write): (usize, &Write)| {
        let group = if n == 0 { group(["4096", "0", "15"]) } else { Group::new() };
        let (place, original) = (write.place.clone(), write.old.clone());
        Record::Intent(Box::new(Intent {
            n,
            write: write.clone(),
            place,
            device: None,
            link: None,
            original,
            group,
            irqs: Vec::new(),
            ticks: None,
        }))
    };
    let done = |(n, write): (usize, &Write)| {
        let group = if n == 0 { group(["0", "5", "15"]) } else { Group::new() };
        Record::Done { n, readback: write.new.clone(), group }
    };
    let begin = Begin {
        version: VERSION,
        at: "then".into(),
        boot_id: "boot-1".into(),
        plan: String::new(),
        mitigations: vec!["test".into()],
        planned: Vec::new(),
    };
    let store = Store::open(root).unwrap();
    let mut journal = Journal::on(store.create("limits").unwrap()).unwrap();
    journal.append(&Record::Begin(begin)).unwrap();
    writes.iter().enumerate().for_each(|one| journal.append(&intent(one)).unwrap());
    writes.iter().enumerate().for_each(|one| journal.append(&done(one)).unwrap());
    journal.append(&Record::Commit { at: "then".into() }).unwrap();
    store.publish("limits").unwrap();
}

#[test]
fn files_that_change_together_return_together_or_not_at_all_after_a_boot() {
    let files = [
        "/proc/sys/vm/dirty_background_bytes",
        "/proc/sys/vm/dirty_background_ratio",
        "/proc/sys/vm/dirty_ratio",
    ];
    for (after_boot, returned) in [
        // The drop-in set the ratio again, and the boot gave the third file a value of its own.
        (["0\n", "5\n", "20\n"], ["4096\n", "0\n", "20\n"]),
        // The drop-in set nothing.
        (["8192\n", "0\n", "20\n"], ["8192\n", "0\n", "20\n"]),
    ] {
        let (folder, root) = tree(&[]);
        files.iter().zip(after_boot).for_each(|(file, text)| put(folder.path(), file, text));
        fs::create_dir_all(folder.path().join("etc/sysctl.d")).unwrap();
        limits(&root, files);
        put(folder.path(), BOOT, "boot-2\n");
        let reverted = back(&root);
        assert!(reverted.is_whole(), "{reverted:?}");
        assert_eq!(files.map(|file| root.read(file).unwrap()), returned);
    }
}
