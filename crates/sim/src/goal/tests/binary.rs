//! The binary form: what is rejected, and why.

use super::*;

/// Rank 0: work, and a send that waits for it; rank 1: a receive. The head has 8 + 6 + 32 bytes, rank 0 begins at 46.
fn sample() -> Vec<u8> {
    binary_of(&read(
        "num_ranks 2\nrank 0 {\na: calc 7\nb: send 8b to 1\nb requires a\n}\nrank 1 {\nrecv 8b from 0\n}\n",
    ))
}

const RANK_0: usize = 46;
/// The first operation follows two counts and a root.
const OP_0: usize = RANK_0 + 12;
const OP_1: usize = OP_0 + 39;
const DEPENDENTS: usize = OP_1 + 39;

#[track_caller]
fn refuses(bytes: &[u8], words: &str) {
    let error = read_binary(bytes).unwrap_err().to_string();
    assert!(error.contains(words), "{error:?} has no {words:?}");
}

/// The sample with other bytes at an offset.
fn with(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut sample = sample();
    sample[at..at + bytes.len()].copy_from_slice(bytes);
    sample
}

#[test]
fn the_sample_is_laid_out_as_described() {
    let sample = sample();
    assert_eq!(read_binary(&sample[..]).unwrap().dependencies(), 1);
    assert_eq!(sample[DEPENDENTS..DEPENDENTS + 4], 1u32.to_le_bytes());
    assert_eq!(sample.len(), DEPENDENTS + 4 + 12 + 39);
}

#[test]
fn other_and_used_up_files_are_reported() {
    refuses(&with(0, b"num_rank"), "this is no binary GOAL schedule: it begins with 0x6b6e61725f6d756e");
    refuses(&with(0, &2342u64.to_le_bytes()), "used up by `LogGOPSim --save-mem`");
}

#[test]
fn every_cut_is_found() {
    let sample = sample();
    for length in 0..sample.len() {
        refuses(&sample[..length], "the schedule ends within");
    }
    refuses(&sample[..9], "within the head, after 9 bytes");
    refuses(&sample[..20], "within the table of ranks, after 20 bytes");
    refuses(&sample[..OP_0 + 1], "within rank 0, operation 1, after 59 bytes");
    // Bytes after the last rank are ignored.
    assert!(read_binary(&[&sample[..], b"more"].concat()[..]).is_ok());
}

#[test]
fn counts_far_above_the_size_of_the_file_cost_nothing() {
    refuses(&with(8, &u32::MAX.to_le_bytes()), "rank 0: bytes 38 to 132 cannot be its part");
    refuses(
        &with(RANK_0, &u32::MAX.to_le_bytes()),
        "4294967295 operations and 1 roots need more than the 94",
    );
    refuses(&with(RANK_0 + 4, &u32::MAX.to_le_bytes()), "2 operations and 4294967295 roots need more");
    let mut huge = with(RANK_0, &u32::MAX.to_le_bytes());
    huge[22..30].copy_from_slice(&(u64::MAX - 1).to_le_bytes());
    huge[30..46].copy_from_slice(&[[0xff; 8], [0xff; 8]].concat());
    refuses(&huge, "rank 0, operation 3: its peer");
    let mut far = sample();
    far[14..30].copy_from_slice(&[(1u64 << 60).to_le_bytes(), (1u64 << 61).to_le_bytes()].concat());
    far[30..46].copy_from_slice(&[(1u64 << 61).to_le_bytes(), (1u64 << 62).to_le_bytes()].concat());
    refuses(&far, "within rank 0");
}

#[test]
fn parts_of_ranks_are_in_order() {
    refuses(
        &with(14, &37u64.to_le_bytes()),
        "rank 0: bytes 37 to 132 cannot be its part, for the part before ends at 38",
    );
    refuses(&with(22, &37u64.to_le_bytes()), "rank 0: bytes 38 to 37");
    refuses(&with(30, &131u64.to_le_bytes()), "rank 1: bytes 131 to");
    refuses(&with(38, &139u64.to_le_bytes()), "rank 1: 0 operations and 0 roots need more than the 7 bytes");
    // A gap between the parts is allowed.
    let mut apart = sample();
    let second = apart.split_off(8 + 132);
    apart.extend(b"room");
    apart.extend(&second);
    for at in [30, 38] {
        let offset = u64::from_le_bytes(apart[at..at + 8].try_into().unwrap()) + 4;
        apart[at..at + 8].copy_from_slice(&offset.to_le_bytes());
    }
    assert_eq!(read_binary(&apart[..]).unwrap(), read_binary(&sample()[..]).unwrap());
}

#[test]
fn no_ranks_and_no_operations_are_refused() {
    refuses(&with(8, &[0; 4]), "the head: it has no ranks");
    let mut empty = sample()[..14].to_vec();
    empty[8..12].copy_from_slice(&1u32.to_le_bytes());
    empty.extend(22u64.to_le_bytes());
    empty.extend(30u64.to_le_bytes());
    empty.extend([0; 8]);
    refuses(&empty, "the schedule has no operation");
}

#[test]
fn operations_make_sense() {
    refuses(&with(OP_1 + 4, &[4]), "rank 0, operation 2: type 4 is none of 1 (send)");
    refuses(&with(OP_1 + 5, &[2]), "rank 0, operation 2: its peer is rank 2, but the ranks are 0 to 1");
    refuses(&with(OP_1 + 5, &[0xff; 4]), "rank 0, operation 2: it sends to any rank");
    refuses(
        &with(OP_1 + 9, &[0xff; 8]),
        "rank 0, operation 2: its size is 18446744073709551615, above the limit",
    );
    refuses(&with(OP_1 + 21, &[1]), "rank 0, operation 2: CPU 1, interface 0 is above the highest");
    refuses(&with(OP_1 + 22, &[1]), "interface 1 is above the highest");
    // Work has no peer; the field is ignored.
    assert!(read_binary(&with(OP_0 + 5, &[9; 4])[..]).is_ok());
}

#[test]
fn dependencies_make_sense() {
    refuses(&with(OP_0 + 23, &[9]), "rank 0: 9 dependents are named, but there are 1 in its part");
    refuses(&with(OP_0 + 23, &[0xff; 8]), "4294967295 dependents are named");
    refuses(&with(OP_0 + 27, &[7]), "rank 0, operation 1: its 1 dependents from number 7 on leave the 1");
    refuses(&with(DEPENDENTS, &[9]), "a dependency names operation 10 of a rank that has 2");
    refuses(&with(DEPENDENTS, &[0]), "rank 0, operation 1: it waits for itself");
    refuses(&with(OP_1, &[2]), "rank 0, operation 2: it should depend on 2 others, but 1 name it");
    refuses(&with(RANK_0 + 8, &[1]), "rank 0: the list of what can start at once differs");
    refuses(&with(OP_1, &[0]), "rank 0: the list of what can start at once differs");
    // Both operations name each other.
    let mut circle = sample();
    circle.splice(DEPENDENTS + 4..DEPENDENTS + 4, [0; 4]);
    circle[OP_0] = 1;
    circle[OP_1 + 23] = 1;
    circle.drain(RANK_0 + 8..RANK_0 + 12);
    circle[RANK_0 + 4] = 0;
    refuses(&circle, "rank 0, operation 1: operation 1 waits for operation 2 waits for operation 1");
}

#[test]
fn unfit_operations_are_findings_of_a_check() {
    let mut both = with(OP_1 + 5, &[2]);
    let peer = both.len() - 39 + 5;
    both[peer] = 3;
    let checked = check_binary(&both[..]).unwrap();
    assert!(checked.schedule.is_none());
    assert_eq!((checked.findings.errors(), checked.findings.warnings()), (2, 0));
    assert_eq!(checked.findings.list()[1].rank, Some(1));
    assert!(check_binary(&sample()[..]).unwrap().findings.is_empty());
}
