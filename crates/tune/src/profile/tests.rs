#![allow(clippy::unwrap_used, reason = "a test may")]
use fs_err as fs;

use super::*;
use crate::fake_machine as fake;

/// The profile `name` of a site with these files, on a machine with 256 CPUs, SMT and kernel 6.12.
fn resolve(files: &[(&str, &str)], name: &str) -> Result<Resolved, String> {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("site");
    fs::create_dir_all(site.join("profiles")).unwrap();
    for (name, text) in files {
        fs::write(site.join(format!("profiles/{name}.toml")), format!("title = 't'\nwhat = 'w'\n{text}"))
            .unwrap();
    }
    let machine = folder.path().join("machine");
    fs::create_dir(&machine).unwrap();
    fake::large(&machine);
    let root = Root::at(&machine).unwrap();
    let profiles = Profiles::with_site(&site).map_err(|error| error.to_string())?;
    profiles.resolve(name, &root, &Facts::look(&root).unwrap(), &Catalogue::built_in())
}

fn ids(files: &[(&str, &str)], name: &str) -> Vec<String> {
    resolve(files, name).unwrap().mitigations
}

#[test]
fn a_profile_extends_others_and_leaves_out_what_they_have() {
    let base = ("base", "mitigations = ['thp', 'ksm']\nvalues = { 'hugepages-static' = '4' }");
    let more = (
        "more",
        "include = ['base']\nwithout = ['ksm']\nmitigations = ['swappiness']\nvalues = { 'hugepages-static' = '8' }",
    );
    let resolved = resolve(&[base, more], "more").unwrap();
    assert_eq!(resolved.mitigations, ["thp", "swappiness"]);
    assert_eq!(resolved.values["hugepages-static"], "8");
    let of_quells = ids(&[("site", "include = ['hpc-node']\nwithout = ['svc-cron']")], "site");
    let quells = Profile::all().into_iter().find(|one| one.name == "hpc-node").unwrap().mitigations;
    assert_eq!(of_quells.len() + 1, quells.len());
    assert_eq!(
        ids(&[("hpc-node", "mitigations = ['thp']")], "hpc-node"),
        ["thp"],
        "a site's replaces quell's"
    );
}

#[test]
fn conditions_are_about_the_machine() {
    for (condition, holds) in [
        ("", true),
        ("smt = true", true),
        ("smt = false", false),
        ("numa = true", true),
        ("numa = false", false),
        ("host = 'lar*'", true),
        ("host = 'small*'", false),
        ("kernel-from = '6.12'", true),
        ("kernel-from = '6.13'", false),
        ("kernel-from = '10.0'", false),
        ("kernel-before = '6.12'", false),
        ("kernel-before = '6.100'", true),
        ("cpus-from = 256", true),
        ("cpus-from = 257", false),
        ("arch = ['x86_64', 'aarch64']", true),
        ("arch = ['ppc64le']", false),
        ("smt = true, numa = false", false),
    ] {
        let text = format!(
            "mitigations = ['thp']\n[[when]]\nis = {{ {condition} }}\nmitigations = ['ksm']\nwithout = ['thp']"
        );
        let expected = if holds { ["ksm"] } else { ["thp"] };
        assert_eq!(ids(&[("site", &text)], "site"), expected, "{condition}");
    }
}

#[test]
fn the_first_alternative_that_is_here_is_taken() {
    let text = "mitigations = ['thp']\nfirst-of = [['cpuset-isolated', 'cpuset-v1-shield'], ['ksm', 'thp'], ['svc-cron']]";
    let resolved = resolve(&[("site", text)], "site").unwrap();
    let here = |id: &str| ["cpuset-v1-shield", "ksm", "thp"].contains(&id);
    assert_eq!(resolved.chosen(here), ["thp", "cpuset-v1-shield", "ksm"]);
    assert_eq!(resolved.chosen(|_| true), ["thp", "cpuset-isolated", "ksm", "svc-cron"]);
}

#[test]
fn mistakes_are_named() {
    let circle = [("a", "include = ['b']"), ("b", "include = ['a']")];
    assert_eq!(resolve(&circle, "a").unwrap_err(), "profiles include each other: a → b → a");
    for (text, part) in [
        ("include = ['hpc-nod']", "hpc-node"),
        ("mitigations = ['thpp']", "thp"),
        ("values = { thpp = '1' }", "thp"),
        ("[[when]]\nis = { kernel-from = 'six' }", "`six` is not a kernel version"),
        ("[[when]]\nis = { cpu = 1 }", "unknown field `cpu`"),
        ("mitigation = ['thp']", "unknown field `mitigation`"),
    ] {
        let error = resolve(&[("site", text)], "site").unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn twice_included_is_once_chosen() {
    let files = [
        ("base", "mitigations = ['thp']"),
        ("one", "include = ['base']"),
        ("two", "include = ['base']"),
        ("both", "include = ['one', 'two']"),
    ];
    assert_eq!(resolve(&files, "both").unwrap().chosen(|_| true), ["thp"]);
}
