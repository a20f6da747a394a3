//! `quell simulate --timeline`, from outside: the file is read field by field, without the schema it was written with.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use insta::assert_snapshot;
use support::{run, transcript};

const SCHEDULE: &str = "num_ranks 2

rank 0 {
l1: calc 100
l2: send 10b to 1 tag 7
l3: send 20b to 1 tag 8
l4: recv 1b from 1 tag 9
l2 requires l1
l3 requires l2
}

rank 1 {
l1: recv 10b from 0 tag 7
l2: recv 20b from 0 tag 8
l3: calc 300 cpu 1
l4: send 1b to 0 tag 9 cpu 1
l3 requires l1
l4 requires l3
}
";

/// A message of Protocol Buffers: its fields in order, as number and value.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => Value::Number(u64::from_le_bytes(bytes.split_off(..8).unwrap().try_into().unwrap())),
            2 => {
                let length = varint(&mut bytes) as usize;
                Value::Bytes(bytes.split_off(..length).unwrap())
            }
            kind => panic!("wire type {kind}"),
        };
        found.push((key >> 3, value));
    }
    found
}

#[derive(Clone, Copy)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn number(self) -> u64 {
        let Self::Number(number) = self else { panic!("bytes in place of a number") };
        number
    }

    fn bytes(self) -> &'a [u8] {
        let Self::Bytes(bytes) = self else { panic!("a number in place of bytes") };
        bytes
    }

    fn text(self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let byte = *bytes.split_off_first().unwrap();
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

fn all<'a>(fields: &[(u64, Value<'a>)], number: u64) -> Vec<Value<'a>> {
    fields.iter().filter(|field| field.0 == number).map(|field| field.1).collect()
}

/// What a time line shows: its tracks, and where slices begin and end on them. Arrows are `>n` and `n>`.
fn shown(path: &Path) -> Vec<String> {
    let file = fs_err::read(path).unwrap();
    let mut names = BTreeMap::new();
    let mut lines = Vec::new();
    for packet in all(&fields(&file), 1) {
        let packet = fields(packet.bytes());
        for track in all(&packet, 60) {
            let track = fields(track.bytes());
            let parent = all(&track, 5)
                .first()
                .map_or(String::new(), |parent| format!("{}/", names[&parent.number()]));
            let name = format!("{parent}{}", all(&track, 2)[0].text());
            let said: Vec<_> = all(&track, 14).into_iter().map(Value::text).collect();
            lines.push(format!("track {name} {}", said.concat()).trim_end().to_owned());
            names.insert(all(&track, 1)[0].number(), name);
        }
        for event in all(&packet, 11) {
            let (at, event) = (all(&packet, 8)[0].number(), fields(event.bytes()));
            lines.push(format!("{at:>6} {} {}", names[&all(&event, 11)[0].number()], happened(&event)));
        }
    }
    lines
}

fn happened(event: &[(u64, Value<'_>)]) -> String {
    if all(event, 9)[0].number() == 2 {
        return "ends".to_owned();
    }
    let mut words = vec!["begins".to_owned(), all(event, 23)[0].text()];
    words.extend(all(event, 4).into_iter().map(|note| {
        let note = fields(note.bytes());
        format!("{}={}", all(&note, 10)[0].text(), all(&note, 3)[0].number())
    }));
    words.extend(all(event, 47).into_iter().map(|arrow| format!("{}>", arrow.number())));
    words.extend(all(event, 48).into_iter().map(|arrow| format!(">{}", arrow.number())));
    words.join(" ")
}

/// The schedule, and noise that strikes both ranks in their first 100 ns.
fn inputs(folder: &Path) {
    fs_err::write(folder.join("two.goal"), SCHEDULE).unwrap();
    fs_err::write(folder.join("noise.txt"), "# Selfish Benchmark\n50.00\t30.00\n900000.00\t10.00\n").unwrap();
    fs_err::write(folder.join("offsets.txt"), "0\n0\n").unwrap();
}

#[test]
fn a_run_of_two_ranks_is_drawn() {
    let dir = tempfile::tempdir().unwrap();
    inputs(dir.path());
    let call = [
        "simulate",
        "two.goal",
        "--noise",
        "noise.txt",
        "--offsets",
        "offsets.txt",
        "--timeline",
        "a.pftrace",
    ];
    let said = transcript(dir.path(), &call);
    let lines =
        shown(&dir.path().join("a.pftrace")).join("\n").replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    assert_snapshot!(format!("$ quell {}\n{said}\n{lines}\n", call.join(" ")));
    let without = run(dir.path(), &call[..call.len() - 2]);
    assert!(said.contains(&*String::from_utf8_lossy(&without.stdout)), "the result is the same");
}

#[test]
fn what_cannot_be_drawn_is_refused_before_the_run() {
    let dir = tempfile::tempdir().unwrap();
    inputs(dir.path());
    fs_err::write(dir.path().join("there.pftrace"), "mine").unwrap();
    let there = transcript(dir.path(), &["simulate", "two.goal", "--timeline", "there.pftrace"]);
    assert!(
        there.starts_with("exit 1\n--- stdout\n--- stderr\nerror: there.pftrace exists already"),
        "{there}"
    );
    assert_eq!(fs_err::read_to_string(dir.path().join("there.pftrace")).unwrap(), "mine");
    let compat = transcript(dir.path(), &["simulate", "two.goal", "--compat", "--timeline", "b.pftrace"]);
    assert!(
        compat.starts_with("exit 2\n--- stdout\n--- stderr\nerror: a time line shows the physical"),
        "{compat}"
    );
    assert!(!dir.path().join("b.pftrace").exists());
}

#[test]
fn of_many_ranks_some_are_drawn_and_their_arrows_pair_up() {
    let dir = tempfile::tempdir().unwrap();
    let args =
        ["simulate", "--pattern", "dissemination", "--ranks", "256", "--bytes", "8", "--iterations", "3"];
    for output in ["a.pftrace", "b.pftrace"] {
        let said = transcript(dir.path(), &[&args[..], &["--timeline", output]].concat());
        assert!(said.contains(&format!("{output} holds 64 of 256 ranks, evenly spread")), "{said}");
    }
    let file = |name| fs_err::read(dir.path().join(name)).unwrap();
    assert_eq!(file("a.pftrace"), file("b.pftrace"), "equal runs give equal bytes");
    let lines = shown(&dir.path().join("a.pftrace"));
    let arrows = |end: &dyn Fn(&str) -> Option<u64>| {
        let mut all: Vec<u64> = lines.iter().filter_map(|line| end(line.rsplit(' ').next()?)).collect();
        all.sort_unstable();
        all
    };
    let from = arrows(&|word| word.strip_suffix('>')?.parse().ok());
    let to = arrows(&|word| word.strip_prefix('>')?.parse().ok());
    // Every fourth rank is drawn: of the eight rounds, the messages of six are between such.
    assert_eq!(from, (1..=3 * 6 * 64).collect::<Vec<u64>>());
    assert_eq!(to, from);
    for name in ["begins send", "begins receive"] {
        assert_eq!(lines.iter().filter(|line| line.contains(name)).count(), 3 * 8 * 64);
    }
}
