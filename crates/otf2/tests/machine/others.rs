//! Archives that other tools wrote.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use quell_otf2::{Archive, Facts};
use quell_recording::mpi::{BLOCKING, Event, Run, What};
use quell_testing::skip;

use crate::support::{self, events};

/// What Python prints that has the module otf2; `None`, and a skip message, without that module.
fn python<I: AsRef<OsStr>>(words: impl IntoIterator<Item = I>) -> Option<String> {
    // Debian's module belongs to the system's Python.
    let python = if Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" };
    let Ok(output) = Command::new(python).args(words).output() else {
        skip("there is no Python");
        return None;
    };
    let problems = String::from_utf8_lossy(&output.stderr);
    if problems.contains("ModuleNotFoundError") {
        skip("Python has no module otf2");
        return None;
    }
    assert!(output.status.success(), "{problems}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// An archive that the Python module wrote; `None`, and a skip message, without that module.
fn written(folder: &Path, style: &str) -> Option<Archive> {
    let script = OsStr::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/archive.py"));
    python([script, folder.as_os_str(), OsStr::new(style)])?;
    Some(Archive::open(folder).unwrap())
}

/// The module reads definitions in their order: a name has to be defined before what has it.
#[test]
fn pythons_module_reads_an_archive() {
    const NAMES: &str = "import otf2, sys\n\
                         with otf2.reader.open(sys.argv[1]) as trace:\n \
                         print(*(event.region.name for _, event in trace.events if hasattr(event, 'region')))";
    let folder = tempfile::tempdir().unwrap();
    let event = |time_ns, what| Event { time_ns, what };
    let stream = [event(5, What::Enter(0)), event(7, What::Leave(0))];
    support::write(folder.path(), &support::definitions(2), Facts::default(), &[stream.to_vec(), Vec::new()]);
    let anchor = folder.path().join("traces.otf2");
    let Some(printed) = python([OsStr::new("-c"), OsStr::new(NAMES), anchor.as_os_str()]) else { return };
    let name = &support::definitions(2).regions[0].name;
    assert_eq!(printed.trim(), format!("{name} {name}"));
}

#[test]
fn either_style_of_groups_counters_of_any_kind_and_another_clock() {
    for style in ["comm", "locations"] {
        let folder = tempfile::tempdir().unwrap();
        let Some(mut archive) = written(folder.path(), style) else { return };
        let all = archive.definitions().clone();
        assert_eq!(all.sources, ["tick", "irq", "steal"]);
        assert_eq!(archive.skipped_locations(), 1);
        let named: Vec<_> =
            all.locations.iter().map(|at| (at.rank, at.thread, at.name.as_str(), at.host.as_str())).collect();
        let sites: Vec<_> = all.regions.iter().map(|region| (region.site.as_deref(), region.mpi)).collect();
        assert_eq!(sites, [(Some("a.c:7"), true), (Some("loop"), false)]);
        let members: Vec<_> = all.comms.iter().map(|comm| comm.members.as_slice()).collect();
        // Without a group of all ranks, ranks are the processes in order.
        let ordered = style == "comm";
        if ordered {
            assert_eq!(named, [(0, 0, "first", "n1"), (1, 0, "second", "n1")]);
            assert_eq!(members, [[0, 1], [1, 0]]);
        } else {
            assert_eq!(named, [(0, 0, "second", "n1"), (1, 0, "first", "n1")]);
            assert_eq!(members, [[1, 0], [1, 0]]);
        }
        let streams = events(&mut archive);
        let [busy, other] = if ordered { [&streams[0], &streams[1]] } else { [&streams[1], &streams[0]] };
        let at = |time_ns, what| Event { time_ns, what };
        let noise = |source, total_ns| What::Noise { source, total_ns };
        let send = |comm, to| What::Send { comm, to, tag: 5, bytes: 6, request: BLOCKING };
        let large = (1 << 53) + 1;
        let expected = [
            at(0, What::Enter(1)),
            at(40_000, noise(0, 1500)),
            at(40_000, noise(1, large)),
            at(40_000, noise(2, 40)),
            at(40_000, What::Enter(0)),
            at(40_000, send(0, 1)),
            // The second one's events refer to ranks of the world.
            at(40_000, send(1, if ordered { 0 } else { 1 })),
            at(80_000, noise(1, large + 1)),
            at(80_000, What::Leave(0)),
            at(80_000, noise(2, 50)),
            at(((1u128 << 62) - 100).saturating_mul(400).try_into().unwrap_or(u64::MAX), What::Leave(1)),
        ];
        assert_eq!(busy, &expected, "{style}");
        assert_eq!(other, &[at(20_000, What::Enter(1)), at(60_000, What::Leave(1))]);
    }
}

#[test]
fn clocks_are_set_and_references_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut archive) = written(folder.path(), "offsets") else { return };
    let first = &events(&mut archive)[0];
    // 100 becomes 1100, and 300 becomes 1500; the archive's clock began at 100.
    let calls: Vec<_> =
        first.iter().filter(|event| matches!(event.what, What::Enter(_) | What::Leave(_))).collect();
    let [enter, send, end, ..] = calls[..] else { panic!("{first:?}") };
    assert_eq!(*enter, Event { time_ns: 1000, what: What::Enter(0) });
    assert_eq!(*send, Event { time_ns: 1200, what: What::Enter(1) });
    assert_eq!(*end, Event { time_ns: 1400, what: What::Leave(1) });
}

#[test]
fn otf2_print_has_nothing_to_say() {
    let folder = tempfile::tempdir().unwrap();
    let all = support::definitions(2);
    let event = |time_ns, what| Event { time_ns, what };
    let large = (1 << 60) + 1;
    let stream = [
        event(5, What::Enter(0)),
        event(6, What::Noise { source: 1, total_ns: large }),
        event(6, What::Probed { comm: 0, from: 1, tag: 3 }),
        event(6, What::Leave(0)),
        event(7, What::CollectivePosted { comm: 0, request: 1 }),
    ];
    let facts = Facts { zero_clock_ns: 1_000, ..Facts::default() };
    support::write(folder.path(), &all, facts, &[stream.to_vec(), Vec::new()]);
    let anchor = folder.path().join("traces.otf2");
    for options in [&["-G"][..], &["-A"], &[]] {
        let Ok(output) = Command::new("otf2-print").args(options).arg(&anchor).output() else {
            return skip("there is no otf2-print");
        };
        let (text, problems) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(
            output.status.success()
                && problems.is_empty()
                && !text.contains("ERROR")
                && !text.contains("INVALID"),
            "{text}{problems}"
        );
        if options.is_empty() {
            assert!(text.contains(&large.to_string()) && text.contains("quell.tag"), "{text}");
        }
    }
}
