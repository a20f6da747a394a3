//! Schedules in all their forms.

mod binary;
mod check;
mod program;
mod random;
mod text;

use super::*;
use crate::loggops::Program;

/// A text with `num_ranks 4` whose rank 0 has this body; the other ranks are empty.
fn rank_0(body: &str) -> String {
    format!("num_ranks 4\nrank 0 {{\n{body}\n}}\nrank 1 {{\n}}\nrank 2 {{\n}}\nrank 3 {{\n}}\n")
}

fn read(text: &str) -> Schedule {
    let mut notes = Findings::default();
    let schedule = read_text(text.as_bytes(), &mut notes).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    schedule
}

fn text_of(schedule: &Schedule) -> String {
    let mut bytes = Vec::new();
    write_text(schedule, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn binary_of(schedule: &Schedule) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_binary(schedule, &mut bytes).unwrap();
    bytes
}

#[test]
fn the_forms_are_distinguished() {
    assert_eq!(Format::detect(b"num_rank"), Format::Text);
    assert_eq!(Format::detect(b""), Format::Text);
    assert_eq!(Format::detect(&4223u64.to_le_bytes()), Format::Binary);
    assert_eq!(Format::detect(&2342u64.to_le_bytes()), Format::Binary);
}

macro_rules! golden {
    ($($name:literal),*) => {[$((
        $name,
        include_str!(concat!("../../tests/golden/loggops/", $name, "/schedule.goal")),
    )),*]};
}

#[test]
fn golden_schedules_survive_every_form() {
    let all = golden![
        "s01_pingpong_eager",
        "s02_unexpected_and_tags",
        "s03_rendezvous_late_recv",
        "s04_rendezvous_early_recv",
        "s05_two_cpus",
        "s06_irequires",
        "s07_wildcards",
        "s08_gap_bound_burst",
        "s09_dissemination_64",
        "s10_binomial_bcast_1024",
        "s11_calc_noise_unit",
        "s12_dissemination_256_noise",
        "s13_recdoub_64_noise_cosched",
        "s14_wildcard_deadlock"
    ];
    for (name, text) in all {
        let schedule = read(text);
        assert_eq!(read(&text_of(&schedule)), schedule, "{name}");
        assert_eq!(read_binary(&binary_of(&schedule)[..]).unwrap(), schedule, "{name}");
        assert!(check(&schedule).is_empty(), "{name}");
        let checked = check_text(text.as_bytes()).unwrap();
        assert_eq!(checked.schedule.as_ref(), Some(&schedule), "{name}");
        assert!(checked.findings.is_empty(), "{name}");
    }
    let (_, generated) = all[8];
    assert_eq!(text_of(&read(generated)), generated, "schedgen writes as quell does");
}

#[test]
fn binaries_of_txt2bin_are_read_and_written_byte_for_byte() {
    let all = [
        (all_of("s05"), &include_bytes!("../../tests/golden/goal/s05_two_cpus.bin")[..]),
        (all_of("s06"), &include_bytes!("../../tests/golden/goal/s06_irequires.bin")[..]),
        (all_of("s07"), &include_bytes!("../../tests/golden/goal/s07_wildcards.bin")[..]),
    ];
    for (text, binary) in all {
        let schedule = read(text);
        assert_eq!(read_binary(binary).unwrap(), schedule);
        assert_eq!(binary_of(&schedule), binary);
    }
}

fn all_of(name: &str) -> &'static str {
    let all = golden!["s05_two_cpus", "s06_irequires", "s07_wildcards"];
    all.into_iter().find(|(other, _)| other.starts_with(name)).unwrap().1
}

#[test]
fn operations_know_what_they_wait_for() {
    let schedule = read(&rank_0(
        "a: calc 1\nb: send 9b to 2 tag 3 cpu 1 nic 2\nc: recv 1b from -1 tag -1\n\
         c requires a\nc irequires b\nb requires a\nc requires b",
    ));
    let ops = schedule.rank_ops(0);
    let seen: Vec<(Vec<u32>, Vec<u32>)> =
        ops.iter().map(|op| (op.requires.to_vec(), op.irequires.to_vec())).collect();
    assert_eq!(seen, [(vec![], vec![]), (vec![0], vec![]), (vec![0, 1], vec![1])]);
    let second = ops.iter().nth(1).unwrap();
    assert_eq!((second.number, second.peer, second.shape.size, second.shape.tag), (1, 2, 9, 3));
    assert_eq!((schedule.cpus(), schedule.nics(), schedule.ranks()), (2, 3, 4));
    assert_eq!(schedule.totals(), Some((3, 1)));
    assert_eq!((schedule.dependencies(), schedule.ops(0), schedule.ops(1)), (4, 3, 0));
}
