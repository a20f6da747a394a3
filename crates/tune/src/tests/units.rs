//! Units, on a tree whose `systemctl` is a script.

use super::*;

/// A systemctl that keeps the state of one unit in a file.
pub const SYSTEMCTL: &str = "#!/bin/sh\nfile=$(dirname \"$0\")/../../run/unit\nread -r active enabled <\"$file\"\ncase $1 in\nis-active) echo \"$active\" ;;\nis-enabled) echo \"$enabled\" ;;\nstart) echo \"active $enabled\" >\"$file\" ;;\nstop) echo \"inactive $enabled\" >\"$file\" ;;\nenable) echo \"$active enabled\" >\"$file\" ;;\ndisable) echo \"$active disabled\" >\"$file\" ;;\nesac\n";

/// Adds a systemctl and a unit in this state to a tree.
pub fn make(folder: &Path, state: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    put(folder, "/run/unit", &format!("{state}\n"));
    put(folder, "/usr/bin/systemctl", SYSTEMCTL);
    let program = folder.join("usr/bin/systemctl");
    fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
}

pub(super) fn unit() -> (tempfile::TempDir, Root, Plan) {
    let (folder, root) = tree(&[]);
    make(folder.path(), "active enabled");
    let place = Place::Unit { name: "cron.service".into() };
    let plan = plan(vec![Write { place, ..write("unit", "active enabled", "inactive disabled") }]);
    (folder, root, plan)
}

#[test]
fn a_unit_that_was_disabled_is_enabled_again_after_a_boot_and_not_started() {
    let (folder, root, plan) = unit();
    run(&root, &plan).unwrap();
    put(folder.path(), BOOT, "boot-2\n");
    assert_eq!(verify(&root).unwrap()[0].standing, SettingState::Ok);
    assert!(back(&root).is_whole());
    assert_eq!(root.read("/run/unit").unwrap(), "inactive enabled\n");
}

#[test]
fn a_unit_half_way_is_not_someone_elses() {
    let (folder, root, plan) = unit();
    let id = run(&root, &plan).unwrap().id.unwrap();
    let store = Store::open(&root).unwrap();
    let text = String::from_utf8(store.read(&id).unwrap()).unwrap();
    // Killed between disable and stop.
    let cut: String = text.split_inclusive('\n').take(3).collect();
    fs::write(store.path_of(&id), sealed_again(cut.as_bytes())).unwrap();
    put(folder.path(), "/run/unit", "active disabled\n");
    assert!(back(&root).is_whole());
    assert_eq!(root.read("/run/unit").unwrap(), "active enabled\n");
}

#[test]
fn what_cannot_be_seen_for_now_stays_open() {
    let (folder, root, plan) = unit();
    run(&root, &plan).unwrap();
    let program = root.path("/usr/bin/systemctl");
    fs::rename(&program, folder.path().join("away")).unwrap();
    assert!(back(&root).has_failed());
    assert_eq!(status(&root).unwrap().0[0].stage, Stage::PartlyReverted);
    let store = Store::open(&root).unwrap();
    let id = store.ids().unwrap().remove(0);
    let left = store.read(&id).unwrap();
    assert!(back(&root).has_failed());
    assert_eq!(store.read(&id).unwrap(), left, "an attempt that closes nothing leaves no line");
    fs::rename(folder.path().join("away"), &program).unwrap();
    assert!(back(&root).is_whole());
    assert_eq!(root.read("/run/unit").unwrap(), "active enabled\n");
}

/// A systemctl for a service, its socket and its path: they stop with the socket, are enabled and disabled together, and the socket starts
/// with the service.
const TOGETHER: &str = r#"#!/bin/sh
cd "$(dirname "$0")/../../units" || exit 9
case $1 in
is-active) cat "$2.active" ;;
is-enabled) cat "$2.enabled" ;;
start) for unit in "$2" x.socket; do echo active >"$unit.active"; done ;;
stop) echo inactive >"$2.active"
    [ "$2" != x.socket ] || for unit in x.path x.service; do echo inactive >"$unit.active"; done ;;
enable | disable) for unit in x.socket x.path x.service; do echo "${1}d" >"$unit.enabled"; done ;;
esac
"#;

const TRIO: [&str; 3] = ["x.socket", "x.path", "x.service"];

fn trio(new: &str) -> (tempfile::TempDir, Root, Plan) {
    let (folder, root, _) = unit();
    put(folder.path(), "/usr/bin/systemctl", TOGETHER);
    for unit in TRIO {
        put(folder.path(), &format!("/units/{unit}.active"), "active\n");
        put(folder.path(), &format!("/units/{unit}.enabled"), "enabled\n");
    }
    let of =
        |unit: &str| Write { place: Place::Unit { name: unit.into() }, ..write(unit, "active enabled", new) };
    (folder, root, plan(TRIO.map(of).to_vec()))
}

fn states(root: &Root) -> [String; 3] {
    TRIO.map(|unit| Place::Unit { name: unit.into() }.read(root).unwrap())
}

#[test]
fn units_that_stop_with_another_one_start_again() {
    for new in ["inactive enabled", "inactive disabled"] {
        let (_folder, root, plan) = trio(new);
        run(&root, &plan).unwrap();
        assert_eq!(states(&root), [new; 3]);
        let reverted = back(&root);
        assert!(reverted.is_whole(), "{reverted:?}");
        assert_eq!(states(&root), ["active enabled"; 3]);
    }
}

#[test]
fn a_crash_after_the_first_unit_loses_none_of_those_that_stopped_with_it() {
    let (folder, root, plan) = trio("inactive disabled");
    let id = run(&root, &plan).unwrap().id.unwrap();
    let store = Store::open(&root).unwrap();
    let whole = String::from_utf8(store.read(&id).unwrap()).unwrap();
    back(&root);
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    // The first unit may be written from its intent on.
    let first = lines.iter().position(|line| line.contains("\"done\"")).unwrap();
    for end in first..=lines.len() {
        for unit in TRIO {
            put(folder.path(), &format!("/units/{unit}.active"), "inactive\n");
            put(folder.path(), &format!("/units/{unit}.enabled"), "disabled\n");
        }
        fs::write(store.path_of(&id), sealed_again(lines[..end].concat().as_bytes())).unwrap();
        let reverted = back(&root);
        assert!(reverted.is_whole(), "{end}: {reverted:?}");
        assert_eq!(states(&root), ["active enabled"; 3], "{end}");
    }
}

#[test]
fn what_an_earlier_write_set_too_has_the_value_before_it() {
    let (_folder, root, _) = unit();
    // Both names are of one file, as a unit's alias is of one unit.
    fs::create_dir_all(root.path("/sys/kernel")).unwrap();
    fs::write(root.path("/sys/kernel/a"), "1\n").unwrap();
    std::os::unix::fs::symlink("a", root.path("/sys/kernel/b")).unwrap();
    let plan = plan(["/sys/kernel/a", "/sys/kernel/b"].map(|path| write(path, "1\n", "0")).to_vec());
    run(&root, &plan).unwrap();
    let store = Store::open(&root).unwrap();
    let id = store.ids().unwrap().remove(0);
    let journal = Transaction::read(&id, &store.read(&id).unwrap());
    let originals: Vec<&str> = journal.entries.iter().map(|entry| entry.intent.original.as_str()).collect();
    assert_eq!(originals, ["1\n"; 2]);
    assert!(back(&root).is_whole());
    assert_eq!(root.read("/sys/kernel/a").unwrap(), "1\n");
}

#[test]
fn systemd_reads_a_units_drop_in_when_it_comes_and_when_it_goes() {
    let (folder, root, _) = unit();
    fs::create_dir_all(root.path("/etc/systemd/system")).unwrap();
    put(
        folder.path(),
        "/usr/bin/systemctl",
        "#!/bin/sh\necho \"$@\" >>\"$(dirname \"$0\")/../../run/log\"\n",
    );
    let path = "/etc/systemd/system/chronyd.service.d/90-quell.conf";
    let text = "# quell: test\n[Service]\nCPUAffinity=0\n";
    let place = Place::DropIn { path: path.into() };
    run(&root, &plan(vec![Write { place, ..write(path, "absent", text) }])).unwrap();
    assert_eq!(root.read("/run/log").unwrap(), "daemon-reload\n");
    assert!(back(&root).is_whole());
    assert_eq!(root.read("/run/log").unwrap(), "daemon-reload\n".repeat(2));
}
