#![allow(clippy::unwrap_used, reason = "a test may")]

use std::os::unix::fs::PermissionsExt as _;

use fs_err as fs;

use super::super::Place;
use super::*;

/// Stores `NAME.active` and `NAME.enabled` in its own folder, and the state below a mask in `NAME.hidden`.
const FAKE: &str = r#"#!/bin/sh
cd "$(dirname "$0")/../../units" || exit 9
echo "$1 $2" >> log
test "$1" = show || test -f "$2.active" || { case $1 in is-active) echo inactive; exit 3;; is-enabled) echo "Failed to get unit file state for $2: No such file or directory" >&2; exit 1;; esac; exit 5; }
case $1 in
is-active) cat "$2.active"; grep -q '^active' "$2.active" || exit 3;;
is-enabled) cat "$2.enabled";;
start) echo active > "$2.active";;
stop) echo inactive > "$2.active";;
enable) echo enabled > "$2.enabled";;
disable) echo disabled > "$2.enabled";;
mask) mv "$2.enabled" "$2.hidden"; echo masked > "$2.enabled";;
unmask) mv "$2.hidden" "$2.enabled";;
show) shift 3; for unit; do
    echo "Id=${unit#alias-of-}"
    if test -f "$unit.active"; then
        printf 'LoadState=loaded\nActiveState=%s\nUnitFileState=%s\n\n' "$(cat "$unit.active")" "$(cat "$unit.enabled")"
    else printf 'LoadState=not-found\nActiveState=inactive\nUnitFileState=\n\n'; fi
done;;
*) exit 7;;
esac
"#;

fn tree(script: &str) -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("usr/bin")).unwrap();
    fs::create_dir_all(folder.path().join("units")).unwrap();
    let program = folder.path().join("usr/bin/systemctl");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let root = Root::at(folder.path()).unwrap();
    (folder, root)
}

fn unit(root: &Root, name: &str, active: &str, enabled: &str) -> Place {
    fs::write(root.path(&format!("/units/{name}.active")), active).unwrap();
    fs::write(root.path(&format!("/units/{name}.enabled")), enabled).unwrap();
    Place::Unit { name: name.to_owned() }
}

fn log(root: &Root) -> Vec<String> {
    let text = fs::read_to_string(root.path("/units/log")).unwrap();
    let did = text.lines().filter(|line| !line.starts_with("is-"));
    did.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn each_property_is_changed_by_itself_and_given_back() {
    for (active, enabled, wanted, did) in [
        ("active", "enabled", "inactive disabled", "disable stop start enable"),
        ("active", "enabled", "inactive enabled", "stop start"),
        ("active", "enabled", "inactive masked", "mask stop unmask start"),
        ("active", "static", "inactive masked", "mask stop unmask start"),
        ("inactive", "enabled", "inactive masked", "mask unmask"),
        ("active", "disabled", "inactive disabled", "stop start"),
        ("failed", "enabled", "inactive enabled", ""),
        ("inactive", "disabled", "active masked", "start mask unmask stop"),
    ] {
        let (_folder, root) = tree(FAKE);
        let place = unit(&root, "cron.service", active, enabled);
        let old = place.read(&root).unwrap();
        assert_eq!(old, format!("{active} {enabled}"));
        place.write(&root, wanted).unwrap();
        assert!(place.same(&place.read(&root).unwrap(), wanted), "{old} → {wanted}");
        place.write(&root, &old).unwrap();
        assert!(place.same(&place.read(&root).unwrap(), &old), "{wanted} → {old}");
        assert_eq!(log(&root).join(" "), did, "{old} → {wanted}");
    }
}

#[test]
fn what_cannot_be_given_back_is_not_changed() {
    for (enabled, wanted) in [
        ("linked", "inactive masked"),
        ("enabled-runtime", "inactive disabled"),
        ("static", "inactive disabled"),
    ] {
        let (_folder, root) = tree(FAKE);
        let place = unit(&root, "cron.service", "active", enabled);
        assert!(matches!(place.write(&root, wanted), Err(PlaceError::Unavailable(_))), "{enabled}");
        assert_eq!(log(&root), [""; 0]);
    }
}

#[test]
fn a_unit_that_is_not_installed_is_missing() {
    let (_folder, root) = tree(FAKE);
    assert_eq!(read(&root, "nscd.service"), Err(PlaceError::Missing));
}

#[test]
fn output_of_another_program_means_that_systemd_does_not_run() {
    for script in [
        "#!/bin/sh\necho \"System has not been booted with\tsystemd\" >&2; exit 1\n",
        "#!/bin/sh\necho 'a \u{1b}[31mtrap'\n",
        "#!/bin/sh\nhead -c 100000 /dev/urandom\n",
    ] {
        let (_folder, root) = tree(script);
        let refused = read(&root, "cron.service").unwrap_err();
        let text = refused.to_string();
        assert!(matches!(refused, PlaceError::Unavailable(_)), "{text}");
        assert!(text.starts_with("systemd does not run here") && !text.contains(['\n', '\u{1b}']), "{text}");
    }
}

#[test]
fn a_failure_says_what_failed() {
    let script = FAKE.replace("stop) echo", "stop) echo 'Access denied' >&2; exit 4; echo");
    let (_folder, root) = tree(&script);
    let place = unit(&root, "cron.service", "active", "enabled");
    let text = place.write(&root, "inactive enabled").unwrap_err().to_string();
    assert_eq!(text, "`systemctl stop cron.service` failed (exit code 4): Access denied");
}

#[test]
fn a_call_that_hangs_is_killed() {
    let (_folder, root) = tree("#!/bin/sh\nexec sleep 60\n");
    let systemctl = Systemctl::find(&root).unwrap().hurried();
    let text = systemctl.state("cron.service").unwrap_err().to_string();
    assert!(text.contains("did not end"), "{text}");
}

#[test]
fn names_are_never_options_and_the_denied_stay() {
    let (_folder, root) = tree(FAKE);
    assert!(matches!(read(&root, "--version"), Err(PlaceError::Invalid(_))));
    assert!(matches!(read(&root, "a b;c"), Err(PlaceError::Invalid(_))));
    assert!(matches!(write(&root, "sshd.service", "inactive disabled"), Err(PlaceError::Denied(_))));
}

#[test]
fn failed_and_inactive_are_the_same() {
    assert!(same("failed enabled", "inactive enabled\n"));
    assert!(same("activating enabled", "active enabled"));
    assert!(!same("failed enabled", "active enabled"));
    assert!(!same("inactive masked", "inactive disabled"));
}

#[test]
fn this_machine_reports_a_unit_or_the_reason_why_not() {
    let reported = read(&Root::system(), "cron.service");
    match reported {
        Ok(value) => assert_eq!(value.split(' ').count(), 2, "{value}"),
        Err(trouble) => assert!(trouble.is_absence() && !trouble.to_string().contains('\n'), "{trouble}"),
    }
}

#[test]
fn a_second_look_asks_once_for_all_units() {
    let (_folder, root) = tree(FAKE);
    let place = |name: &str| Place::Unit { name: name.to_owned() };
    unit(&root, "cron.service", "active", "enabled");
    unit(&root, "alias-of-x.service", "active", "alias");
    let names = ["cron.service", "nscd.service", "alias-of-x.service"];
    let mut units = Units::default();
    let mut look = || {
        let _ = fs::remove_file(root.path("/units/log"));
        let values = units.during(&root, || names.map(|name| place(name).read(&root)));
        (values, fs::read_to_string(root.path("/units/log")).unwrap().lines().count())
    };
    let (first, calls) = look();
    assert_eq!(first[0], Ok("active enabled".into()));
    assert_eq!((&first[1], &first[2]), (&Err(PlaceError::Missing), &Ok("active alias".into())));
    assert_eq!(calls, 6);
    // One for all, and two for the one that is shown by another name.
    assert_eq!(look(), (first, 3));
    // Outside of a look each is asked again, as a write must.
    fs::write(root.path("/units/cron.service.active"), "inactive").unwrap();
    assert_eq!(place("cron.service").read(&root), Ok("inactive enabled".into()));
}
