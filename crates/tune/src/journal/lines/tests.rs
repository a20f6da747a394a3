#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]
use proptest::prelude::*;

use super::*;

fn record(n: usize) -> Record {
    Record::Refused { n, why: format!("reason \"{n}\"}}"), immovable: n.is_multiple_of(2) }
}

fn journal(count: usize) -> Vec<u8> {
    let file = tempfile::tempfile().unwrap();
    let mut journal = Journal::on(file.try_clone().unwrap()).unwrap();
    (0..count).for_each(|n| journal.append(&record(n)).unwrap());
    content(&file)
}

fn content(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn records(bytes: &[u8]) -> (Vec<Record>, Vec<usize>) {
    let (lines, damaged) = read(bytes);
    (lines.iter().map(|line| serde_json::from_slice(line.json).unwrap()).collect(), damaged)
}

/// SHA-256 of the text before the checksum, by coreutils' sha256sum.
#[test]
fn a_checksum_is_that_of_sha256sum() {
    assert_eq!(checksum(b""), "e3b0c44298fc1c14");
    let text = String::from_utf8(journal(1)).unwrap();
    let (content, sum) = text.lines().nth(1).unwrap().rsplit_once(",\"sum\":\"").unwrap();
    assert_eq!(
        content,
        r#"{"step":"refused","n":0,"why":"reason \"0\"}","immovable":true,"line":2,"before":"0000000000000000""#
    );
    assert_eq!(sum, format!("{}\"}}", checksum(content.as_bytes())));
}

#[test]
fn what_is_written_is_read() {
    let (found, damaged) = records(&journal(5));
    assert_eq!((found, damaged), ((0..5).map(record).collect(), vec![]));
    let whole = journal(5);
    assert!(whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).all(|line| {
        serde_json::from_slice::<serde_json::Value>(line).is_ok_and(|value| value.is_object())
    }));
}

#[test]
fn an_empty_file_lost_its_lines() {
    assert_eq!(records(b"").1, [1]);
    assert_eq!(records(&[0; 100]).1, [1]);
}

#[test]
fn a_seal_that_counts_too_much_is_damaged() {
    let whole = journal(2);
    for count in ["      0", "9999999", "     -1", "      x"] {
        let text = String::from_utf8(whole.clone()).unwrap().replacen("      3", count, 1);
        let (found, damaged) = records(text.as_bytes());
        assert_eq!((found.len(), damaged), (2, vec![1]), "{count}");
    }
}

/// Lines that were moved, exchanged for those of another journal, or written twice.
#[test]
fn lines_have_their_place() {
    let whole = journal(4);
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let of = |order: &[usize]| order.iter().flat_map(|n| lines[*n]).copied().collect::<Vec<u8>>();
    assert_eq!(records(&of(&[0, 1, 3, 4])).1, [3]);
    assert_eq!(records(&of(&[0, 1, 2, 2, 3, 4])).1, Vec::<usize>::new(), "once is enough");
    assert_eq!(records(&of(&[0, 2, 1, 3, 4])).1, Vec::<usize>::new(), "numbers give the order");
    let (line, _) = chained("{\"step\":\"commit\",\"at\":\"then\"}", 3, &no_line());
    let other = [lines[0], lines[1], line.as_bytes(), lines[3], lines[4]].concat();
    assert_eq!(records(&other).1, [2, 3], "neither its neighbours' checksum fits");
}

#[test]
fn a_line_that_a_crash_interrupted_costs_nothing() {
    let whole = journal(3);
    let ends: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] == b'\n').collect();
    for cut in ends[2] + 1..ends[3] {
        let crashed = sealed_again(&whole[..cut]);
        assert_eq!(records(&crashed), ((0..2).map(record).collect(), vec![]), "cut at {cut}");
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&crashed, 0).unwrap();
        let mut journal = Journal::go_on(file.try_clone().unwrap(), &crashed).unwrap();
        journal.append(&record(2)).unwrap();
        assert_eq!(records(&content(&file)), ((0..3).map(record).collect(), vec![]), "cut at {cut}");
    }
}

proptest! {
    #[test]
    fn a_cut_is_always_found(count in 1_usize..8, at in any::<prop::sample::Index>()) {
        let whole = journal(count);
        // The end of the last line alone is no loss.
        let cut = at.index(whole.len() - 1);
        let (found, damaged) = records(&whole[..cut]);
        prop_assert!(!damaged.is_empty());
        prop_assert_eq!(&found[..], &(0..found.len()).map(record).collect::<Vec<_>>()[..]);
    }

    /// A change of one byte costs at most the line in which it is, and is always found.
    #[test]
    fn a_changed_byte_is_found(count in 1_usize..8, at in any::<prop::sample::Index>(), new in any::<u8>()) {
        let whole = journal(count);
        let at = at.index(whole.len());
        prop_assume!(whole[at] != new);
        let mut changed = whole.clone();
        changed[at] = new;
        let (found, damaged) = records(&changed);
        // A space of the seal may become another white space.
        let is_same = at < length_of_seal() && Seal::read(changed.split(|byte| *byte == b'\n').next().unwrap()).is_some_and(
            |seal| seal.sealed == count + 1 && whole.windows(DIGITS).any(|part| part == seal.last.as_bytes()));
        prop_assert!(is_same || !damaged.is_empty());
        prop_assert!(found.len() + 2 >= count, "{} of {count}", found.len());
        prop_assert!(found.iter().all(|one| (0..count).any(|n| record(n) == *one)));
    }

    #[test]
    fn nothing_panics(bytes in any::<Vec<u8>>()) {
        let _ = read(&bytes);
        let _ = read(&[Seal::line(3, "x").as_bytes(), &bytes].concat());
    }

    /// Whatever was cut, what is appended later does not hide it.
    #[test]
    fn a_continued_journal_still_lacks_its_lines(count in 2_usize..8, at in any::<prop::sample::Index>()) {
        let whole = journal(count);
        let first = length_of_seal();
        let cut = first + at.index(whole.len() - first);
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&whole[..cut], 0).unwrap();
        let mut journal = Journal::go_on(file.try_clone().unwrap(), &whole[..cut]).unwrap();
        let before = records(&whole[..cut]).1;
        journal.append(&record(9)).unwrap();
        let (found, after) = records(&content(&file));
        prop_assert_eq!(found.last(), Some(&record(9)));
        prop_assert_eq!(after, before);
    }
}

fn length_of_seal() -> usize {
    Seal::line(1, "").len()
}
