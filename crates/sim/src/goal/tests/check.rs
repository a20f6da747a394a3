//! What a check must find, and what it must not.

use super::*;
use crate::loggops::Shape;

/// The findings on a schedule of two ranks as text, with `error` or `warning` before each.
fn found(rank_0: &str, rank_1: &str) -> Vec<String> {
    let text = format!("num_ranks 2\nrank 0 {{\n{rank_0}\n}}\nrank 1 {{\n{rank_1}\n}}\n");
    let mut checked = check_text(text.as_bytes()).unwrap();
    place_findings(text.as_bytes(), &mut checked.findings).unwrap();
    let show = |finding: &Finding| format!("{:?}: {finding}", finding.severity);
    checked.findings.list().iter().map(show).collect()
}

#[track_caller]
fn finds(rank_0: &str, rank_1: &str, expected: &[&str]) {
    let found = found(rank_0, rank_1);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found:?} does not begin with {expected:?}");
    }
}

#[test]
fn what_matches_is_not_found() {
    finds("send 8b to 1\nsend 8b to 0 tag 7\nrecv 8b from 0 tag 7", "recv 9b from 0", &[]);
    finds(
        "send 8b to 1\nsend 8b to 1 tag 9\nsend 1b to 1 tag -1",
        "recv 8b from -1\nrecv 8b from 0 tag -1\nrecv 8b from -1 tag -1",
        &[],
    );
}

#[test]
fn sends_and_receives_without_each_other_are_found() {
    finds(
        "a: send 8b to 1 tag 3\nb: send 8b to 1 tag 3\nc: send 8b to 1 tag 3",
        "r: recv 8b from 0 tag 3\ns: recv 8b from 0 tag 4",
        &[
            "Error: line 4: rank 0, operation 2 (`b`): 2 of 3 messages to rank 1 with tag 3 find no receive; add",
            "Error: line 9: rank 1, operation 2 (`s`): 1 of 1 receives from rank 0 with tag 4 get no message; add",
        ],
    );
    finds(
        "send 8b to 1",
        "calc 1",
        &["Error: line 3: rank 0, operation 1: 1 of 1 messages to rank 1 with tag 0"],
    );
}

#[test]
fn with_wildcards_only_what_is_certain_is_found() {
    finds(
        "send 8b to 1 tag 3\nsend 8b to 1 tag 3",
        "recv 8b from -1 tag 3\nrecv 8b from -1 tag 4",
        &[
            "Error: line 4: rank 0, operation 2: 1 of 2 messages to rank 1 with tag 3",
            "Error: line 8: rank 1, operation 2: 1 of 1 receives from any rank with tag 4 get no message",
        ],
    );
    finds(
        "send 8b to 1 tag 3\nsend 8b to 1 tag 4",
        "recv 8b from 0 tag -1",
        &["Error: rank 1: 2 messages are sent to it, but it receives 1"],
    );
    finds(
        "send 8b to 1 tag -1",
        "recv 8b from 0 tag 1\nrecv 8b from 0 tag 2",
        &["Error: rank 1: it receives 2 messages, but 1 are sent to it"],
    );
    finds(
        "calc 1",
        "recv 1b from -1 tag -1",
        &["Error: line 6: rank 1, operation 1: 1 of 1 receives from any rank with any tag"],
    );
}

#[test]
fn all_unfit_operations_are_found_at_once() {
    finds(
        "a: send 8b to 2\nb: calc 1\nb requires b\nc: calc 1\nc requires b\nb requires c",
        "r: recv 8b from 5\nr: calc 1",
        &[
            "Error: line 3: rank 0, operation 1 (`a`): its peer is rank 2",
            "Error: line 5: rank 0, operation 2 (`b`): it waits for itself",
            "Error: line 4: rank 0, operation 2 (`b`): operation 2 waits for operation 3 waits for operation 2; none",
            "Error: line 11: rank 1, operation 1 (`r`): its peer is rank 5",
            "Warning: line 12: rank 1, operation 2 (`r`): the label `r` is that of line 11",
        ],
    );
}

#[test]
fn work_that_overflows_is_found() {
    let huge = format!("calc {MAX_SIZE}\n");
    finds(&huge.repeat(3), &format!("calc {}", MAX_SIZE - 1), &[]);
    finds(
        &huge.repeat(3),
        &huge,
        &["Warning: all ranks: the work of all ranks adds up to 18446744073709551616 ns"],
    );
    finds(
        &huge.repeat(4),
        "calc 1",
        &["Error: rank 0: the work on its CPU 0 adds up to 18446744073709551616 ns", "Warning: all ranks"],
    );
    let on_two = format!("calc {MAX_SIZE}\ncalc {MAX_SIZE} cpu 1\n").repeat(2);
    finds(&on_two, "calc 1", &["Warning: all ranks"]);
}

#[test]
fn a_flood_of_findings_is_counted() {
    let mut builder = ScheduleBuilder::new(1);
    builder.begin_rank();
    for tag in 0..1_000 {
        builder.op(Shape::send(1, tag), 0);
    }
    builder.end_rank();
    let findings = check(&builder.finish().unwrap());
    assert_eq!((findings.errors(), findings.warnings()), (1_000, 0));
    assert_eq!(findings.list().len() as u64, Findings::MOST);
}

#[test]
fn errors_without_warnings_and_warnings_without_errors_are_findings() {
    let counts = |rank_0: &str| {
        let text = format!("num_ranks 2\nrank 0 {{\n{rank_0}\n}}\nrank 1 {{\ncalc 1\n}}\n");
        let findings = check_text(text.as_bytes()).unwrap().findings;
        (findings.errors(), findings.warnings(), findings.is_empty())
    };
    assert_eq!(counts("calc 1"), (0, 0, true));
    assert_eq!(counts("send 8b to 1"), (1, 0, false));
}
