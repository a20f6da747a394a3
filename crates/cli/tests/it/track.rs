//! `quell track`, run as a program.

use std::path::Path;

use crate::support::made_run::{self, RECV, Rank, definitions, many_ranks, two_ranks};
use crate::support::pftrace::shown;
use crate::support::{json, quell, run, transcript};
use insta::assert_snapshot;
use quell_recording::mpi::What;

const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\u{1b}[31m\u{202e}x";

fn two(folder: &Path) {
    made_run::write(&folder.join("two"), &definitions(2), &two_ranks());
}

/// The length of the longest line, in characters.
fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn a_run_is_shown_as_text() {
    let dir = tempfile::tempdir().unwrap();
    two(dir.path());
    assert_snapshot!(transcript(dir.path(), &["track", "two"]));
    let anchor = transcript(dir.path(), &["track", "two/traces.otf2"]);
    assert_eq!(anchor, transcript(dir.path(), &["track", "two"]));
}

#[test]
fn a_run_is_shown_as_a_document() {
    let dir = tempfile::tempdir().unwrap();
    two(dir.path());
    let document = json(dir.path(), &["track", "two", "--json"]);
    assert_eq!(document["schema"], "quell.track/2");
    assert_snapshot!(serde_json::to_string_pretty(&document).unwrap());
}

/// Ten messages of 1 KiB whose sends wait. Each time noise makes the receiver 30 us later than the sender, which therefore loses 300 us.
#[test]
fn the_eager_limit_is_learned_or_given_and_stated() {
    let dir = tempfile::tempdir().unwrap();
    let mut ranks = [Rank::new(), Rank::new()];
    for phase in 0..10 {
        let (send, receive) = (100 + 130 * phase, 130 + 130 * phase);
        let [sender, receiver] = ranks;
        let receiver = receiver.struck(receive, 0, 40 * (phase + 1));
        ranks = [
            sender.sends_bytes([send, receive], 1, 1024),
            receiver.receives_bytes([receive, receive], 0, 1024),
        ];
    }
    made_run::write(&dir.path().join("run"), &definitions(2), &ranks.map(|rank| rank.finalizes(1400, 1500)));
    let net = "L_ns = 0\no_ns = 0\ng_ns = 0\nG_ns_per_byte = 0\nO_ns_per_byte = 0\nS_bytes = 256\n";
    fs_err::write(dir.path().join("net.toml"), net).unwrap();
    for (options, expected, amplified_us, line) in [
        (
            &[][..],
            ("different hosts", 1023, "learned", 10),
            300,
            "between hosts wait for receivers above 1023 B (learned from 10 sends)",
        ),
        (
            &["--eager-limit", "4Ki"][..],
            ("all", 4096, "given", 0),
            0,
            "wait for receivers above 4096 B (given)",
        ),
        (
            &["--eager-limit", "256"][..],
            ("all", 256, "given", 0),
            300,
            "wait for receivers above 256 B (given)",
        ),
        (
            &["--net", "net.toml"][..],
            ("all", 256, "measured", 0),
            300,
            "wait for receivers above 256 B (measured)",
        ),
        (
            &["--net", "net.toml", "--eager-limit", "4Ki"][..],
            ("all", 4096, "given", 0),
            0,
            "wait for receivers above 4096 B (given)",
        ),
        (
            &["--net", "L=0,o=0,G=0,S=1Ki"][..],
            ("all", 1024, "given", 0),
            0,
            "wait for receivers above 1024 B (given)",
        ),
        (
            &["--net", "L=0,o=0,G=0"][..],
            ("different hosts", 1023, "learned", 10),
            300,
            "(learned from 10 sends)",
        ),
    ] {
        let document = json(dir.path(), &[&["track", "run", "--json"], options].concat());
        let limits = document["eager_limits"].as_array().unwrap();
        assert_eq!(limits.len(), 1, "{options:?}");
        let limit = &limits[0];
        let found = (
            limit["between"].as_str(),
            limit["limit_bytes"].as_u64(),
            limit["origin"].as_str(),
            limit["sends"].as_u64(),
        );
        let (between, bytes, origin, sends) = expected;
        assert_eq!(found, (Some(between), Some(bytes), Some(origin), Some(sends)), "{options:?}");
        assert_eq!(document["ranks"][0]["amplified_ns"], amplified_us * 1000, "{options:?}");
        let text = transcript(dir.path(), &[&["track", "run"], options].concat());
        assert!(
            text.lines().any(|printed| printed.starts_with("sends") && printed.ends_with(line)),
            "{text}"
        );
    }
}

#[test]
fn many_ranks_are_drawn_and_fit_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let mut known = definitions(40);
    known.regions[2].site =
        Some("a_function_with_a_name_that_is_too_long_for_most_terminals (libsolver.so.1)".into());
    made_run::write(&dir.path().join("many"), &known, &many_ranks(40));
    assert_snapshot!(transcript(dir.path(), &["track", "many"]));
    for columns in [80, 100, 160] {
        let mut command = quell(dir.path());
        let output = command.env("COLUMNS", columns.to_string()).args(["track", "many"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(widest(&text) <= columns, "{columns} columns:\n{text}");
    }
}

#[test]
fn an_archive_without_counters_is_not_called_quiet() {
    let dir = tempfile::tempdir().unwrap();
    let mut known = definitions(2);
    known.sources.clear();
    let mut ranks = two_ranks();
    for rank in &mut ranks {
        rank.0.retain(|event| !matches!(event.what, What::Noise { .. }));
    }
    made_run::write(&dir.path().join("bare"), &known, &ranks);
    assert_snapshot!(transcript(dir.path(), &["track", "bare", "--html", "bare.html"]));
    let page = fs_err::read_to_string(dir.path().join("bare.html")).unwrap();
    assert!(page.contains("\"counted\":false"));
}

#[test]
fn a_broken_archive_is_reported_and_fails() {
    let dir = tempfile::tempdir().unwrap();
    // No rank sends what rank 1 receives, and rank 0 does not enter the second collective.
    let ranks = [
        Rank::new().reduces(100, 220).finalizes(400, 500),
        Rank::new().receives(50, 80, 0).reduces(200, 220).reduces(250, 300).at(310, What::Leave(RECV)),
    ];
    made_run::write(&dir.path().join("broken"), &definitions(2), &ranks);
    assert_snapshot!(transcript(dir.path(), &["track", "broken", "--html", "broken.html"]));
    let page = fs_err::read_to_string(dir.path().join("broken.html")).unwrap();
    assert!(page.contains("\"receives_without_send\":1"));
    assert!(page.contains("\"sentences\":[\"rank 1"), "the page shows each warning as a sentence");
}

#[test]
fn what_is_no_archive_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs_err::create_dir(dir.path().join("empty")).unwrap();
    two(dir.path());
    fs_err::write(dir.path().join("mine.pftrace"), "mine").unwrap();
    fs_err::write(dir.path().join("mine.txt"), "mine").unwrap();
    let cases: [&[&str]; 4] = [
        &["track", "nothing"],
        &["track", "empty"],
        &["track", "two", "--timeline", "mine.pftrace"],
        &["track", "two", "--html", "mine.txt"],
    ];
    let printed = cases.map(|args| format!("$ quell {}\n{}", args.join(" "), transcript(dir.path(), args)));
    assert_snapshot!(printed.join("\n"));
    assert_eq!(fs_err::read_to_string(dir.path().join("mine.txt")).unwrap(), "mine");
}

#[test]
fn the_page_is_whole_and_light() {
    let dir = tempfile::tempdir().unwrap();
    two(dir.path());
    assert!(run(dir.path(), &["track", "two", "--html", "a.html"]).status.success());
    assert!(run(dir.path(), &["report", "two", "-o", "b.html"]).status.success());
    let page = |name: &str| {
        let text = fs_err::read_to_string(dir.path().join(name)).unwrap();
        let at = text.find("\"generated\"").unwrap();
        text[..at].to_owned() + text[at..].split_once("\"quell\"").unwrap().1
    };
    assert_eq!(page("a.html"), page("b.html"), "both verbs make the same page");
    let text = page("a.html");
    for part in ["trackSections", "\"source\":\"task\"", "\"host\":[\"node0\",\"node1\"]", "exchange (app)"] {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains("http-equiv=\"refresh\"") && !text.contains("src=\"http"), "it loads nothing");
}

#[test]
fn hostile_names_stay_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let mut known = definitions(2);
    for region in &mut known.regions {
        region.name += HOSTILE;
        region.site = Some(HOSTILE.to_owned());
    }
    known.locations.iter_mut().for_each(|location| location.host = HOSTILE.to_owned());
    known.sources[0] += HOSTILE;
    made_run::write(&dir.path().join("bad"), &known, &two_ranks());
    let output = run(dir.path(), &["track", "bad", "--html", "bad.html", "--timeline", "bad.pftrace"]);
    let page = fs_err::read_to_string(dir.path().join("bad.html")).unwrap();
    assert!(page.contains("\\u003c/script\\u003e\\u003cimg"), "the names are there");
    assert!(!page.contains("<img") && !page.contains('\u{1b}'));
    assert_eq!(page.matches("</script>").count(), 3);
    for bytes in [output.stdout, output.stderr, fs_err::read(dir.path().join("bad.pftrace")).unwrap()] {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("\u{1b}[31m") && !text.contains('\u{202e}'), "{text}");
    }
}

#[test]
fn a_time_line_shows_who_kept_whom_waiting() {
    let dir = tempfile::tempdir().unwrap();
    two(dir.path());
    let printed = transcript(dir.path(), &["track", "two", "--timeline", "two.pftrace"]);
    let lines =
        shown(&dir.path().join("two.pftrace")).join("\n").replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    let reported = printed.split_once("--- stderr\n").unwrap().1;
    assert_snapshot!(format!("{reported}\n{lines}\n"));
}

#[test]
fn of_many_ranks_some_are_drawn_and_the_page_stays_light() {
    let dir = tempfile::tempdir().unwrap();
    made_run::write(&dir.path().join("many"), &definitions(3_000), &many_ranks(3_000));
    let args = ["track", "many", "--timeline", "many.pftrace", "--html", "many.html"];
    let printed = transcript(dir.path(), &args);
    assert!(printed.contains("of 3000 ranks, evenly spread"), "{printed}");
    let page = fs_err::metadata(dir.path().join("many.html")).unwrap().len();
    assert!(page < 3_000_000, "{page} bytes");
    let lines = shown(&dir.path().join("many.pftrace"));
    let tracks = lines.iter().filter(|line| line.contains("/rank ") && !line.contains("accumulated noise"));
    let tracks = tracks.filter(|line| line.starts_with("track")).count();
    assert!((64..=66).contains(&tracks), "{tracks} tracks");
}
