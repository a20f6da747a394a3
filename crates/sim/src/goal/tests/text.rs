//! Text: what is read, and what is rejected at which line and column.

use super::*;
use crate::loggops::{ANY, Kind};

/// Line, column and message of the error of a text.
fn refused(text: &[u8]) -> (u64, u32, String) {
    match read_text(text, &mut Findings::default()) {
        Err(TextError::Line { line, column, reason }) => (line, column, reason.to_string()),
        other => panic!("{other:?} for {}", text.escape_ascii()),
    }
}

#[track_caller]
fn refuses(text: &str, line: u64, column: u32, words: &str) {
    let (seen_line, seen_column, message) = refused(text.as_bytes());
    assert!(message.contains(words), "{message:?} of {text:?} has no {words:?}");
    assert_eq!((seen_line, seen_column), (line, column), "{message} in {text:?}");
}

/// As [`refuses`], for line 3 of rank 0.
#[track_caller]
fn refuses_in_rank(body: &str, line: u64, column: u32, words: &str) {
    refuses(&rank_0(body), line, column, words);
}

#[test]
fn the_whole_grammar_is_read() {
    let schedule = read(
        "// a comment\r\n\n  num_ranks 2\r\n/* more\n than one line */\n\trank 0{ \n a : send 5 b to 1 tag -1 cpu 255 nic 7\n\
         requires:calc 005\n  // here\nrequires irequires a\nrecv 1b from -1\nrecv 8bfrom 1 tag1\n } /* x */ rank 1 {}\n\n//end",
    );
    let ops = schedule.rank_ops(0);
    let seen: Vec<_> = ops
        .iter()
        .map(|op| (op.shape.kind, op.peer, op.shape.size, op.shape.tag, op.shape.cpu, op.shape.nic))
        .collect();
    assert_eq!(
        seen,
        [
            (Kind::Send, 1, 5, ANY, 255, 7),
            (Kind::Calc, 0, 5, 0, 0, 0),
            (Kind::Recv, ANY, 1, 0, 0, 0),
            (Kind::Recv, 1, 8, 1, 0, 0)
        ]
    );
    assert_eq!(ops.iter().nth(1).unwrap().irequires, [0]);
}

#[test]
fn a_repeated_label_keeps_its_first_operation_and_is_noted() {
    let text = rank_0("a: calc 5\na: calc 6\nb: calc 7\nb requires a");
    let mut notes = Findings::default();
    let schedule = read_text(text.as_bytes(), &mut notes).unwrap();
    assert_eq!(schedule.rank_ops(0).iter().nth(2).unwrap().requires, [0]);
    let [note] = notes.list() else { panic!("{notes:?}") };
    assert_eq!((note.severity, note.op), (Severity::Warning, Some(2)));
    assert!(
        note.to_string().starts_with("line 4: rank 0, operation 2 (`a`): the label `a` is that of line 3")
    );
    assert_eq!(read_text(&*rank_0("a: calc 5").into_bytes(), &mut notes).unwrap().ops(0), 1);
}

#[test]
fn labels_belong_to_one_rank() {
    refuses(
        "num_ranks 2\nrank 0 {\na: calc 1\n}\nrank 1 {\nb: calc 1\nb requires a\n}\n",
        7,
        12,
        "no operation of this rank has the label `a`",
    );
}

#[test]
fn words_that_do_not_belong_are_refused() {
    refuses_in_rank("wait 5", 3, 1, "the unknown word `wait`; write `send SIZEb to RANK`");
    refuses_in_rank("CALC 5", 3, 1, "the unknown word `CALC`");
    refuses_in_rank("calc5", 3, 1, "the unknown word `calc5`");
    refuses_in_rank("a: work 5", 3, 4, "found `work`; write `send");
    refuses_in_rank("a b: calc 5", 3, 3, "found `b`; write `:`, `requires` or `irequires`");
    refuses_in_rank("_a: calc 5", 3, 1, "found `_a`; write an operation");
    refuses_in_rank("calc -5", 3, 6, "found `-`; write a number of nanoseconds");
    refuses_in_rank("calc 0x5", 3, 7, "found `x5`; write the end of the line");
    refuses_in_rank("calc 5 nic 1", 3, 8, "`calc` has only `cpu`");
    refuses_in_rank("calc 5 tag 1", 3, 8, "`calc` has only `cpu`");
    refuses_in_rank("calc: calc 5", 3, 5, "a number of nanoseconds");
    refuses_in_rank("send 5 to 1", 3, 8, "`b` (bytes) behind the size");
    refuses_in_rank("send 5b from 1", 3, 9, "found `from`; write `to` and a rank");
    refuses_in_rank("recv 5b to 1", 3, 9, "found `to`; write `from` and a rank");
    refuses_in_rank("send 5b to", 3, 11, "found the end of the line; write the rank to send to");
    refuses_in_rank("send 5b to -1", 3, 12, "found `-`; write the rank to send to");
    refuses_in_rank("recv 5b from -2", 3, 14, "or -1 for any");
    refuses_in_rank("recv 5b from -10", 3, 14, "or -1 for any");
    refuses_in_rank("recv 5b from 1 tag x", 3, 20, "the tag, a number or -1");
    refuses_in_rank("send 5b to 1 cpu 1 tag 1", 3, 20, "in this order");
    refuses_in_rank("calc 5 }", 3, 8, "`}` on a line of its own");
    refuses_in_rank("a: calc 5\nb: calc 6\nb requires a, a", 5, 13, "found `,`");
    refuses_in_rank("a: calc 5\nb: calc 6\nb requires", 5, 11, "the label of the operation to wait for");
    refuses_in_rank("calc 5;", 3, 7, "found `;`");
    refuses("num_ranks 1\nrank 0\n{\ncalc 5\n}\n", 2, 7, "found the end of the line; write `{`");
    refuses("num_ranks 1\nrank x {\n", 2, 6, "the number of the rank");
    refuses("num_ranks 1\nrank 0 {\ncalc 5\n}x\n", 4, 2, "the unknown word `x`");
}

#[test]
fn comments_have_lines_of_their_own() {
    refuses_in_rank("calc 5 // x", 3, 8, "a line of its own");
    refuses_in_rank("calc 5 /* x */", 3, 8, "a line of its own");
    refuses_in_rank("/ x", 3, 1, "`//` or `/*`");
    refuses("num_ranks 1\n/* a\nrank 0 {\n", 2, 1, "never closed");
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    refuses_in_rank("calc 99999999999999999999", 3, 6, "99999999999999999999 is too large");
    refuses_in_rank("calc 4611686018427387905", 3, 6, "4611686018427387904 is the most");
    assert_eq!(read(&rank_0("calc 4611686018427387904")).ops(0), 1);
    refuses_in_rank("send 8b to 4294967297", 3, 12, "4294967297 is too large for a rank");
    refuses_in_rank("send 8b to 1 tag 4294967296", 3, 18, "too large for tag");
    refuses_in_rank("send 8b to 1 tag 4294967295", 3, 18, "write -1 for any tag");
    refuses_in_rank("recv 8b from 4294967295", 3, 14, "write -1 for any rank");
    refuses_in_rank("calc 5 cpu 256", 3, 12, "256 is too large for a CPU; 255 is the most");
    refuses_in_rank("send 5b to 1 nic 300", 3, 18, "300 is too large for a network interface");
    refuses("num_ranks 4294967296\n", 1, 11, "too large for a number of ranks");
}

#[test]
fn ranks_come_in_order_and_all_of_them() {
    refuses("", 1, 1, "begin the file with `num_ranks N`");
    refuses("rank 0 {\n}\n", 1, 1, "begin the file with `num_ranks N`");
    refuses("calc 5\n", 1, 1, "begin the file with `num_ranks N`");
    refuses("num_ranks 0\n", 1, 1, "at least one rank");
    refuses("num_ranks 1\nnum_ranks 1\n", 2, 1, "given before");
    refuses("num_ranks 2\nrank 1 {\n}\n", 2, 1, "rank 1 stands where rank 0 belongs");
    refuses("num_ranks 1\nrank 0 {\n}\nrank 1 {\n}\n", 4, 1, "rank 1 is one too many for `num_ranks 1`");
    refuses("num_ranks 1\nrank 0 {\n}\nrank 0 {\n}\n", 4, 1, "rank 0 is one too many");
    refuses("num_ranks 2\nrank 0 {\ncalc 1\n}\n", 4, 1, "the file ends after 1 of 2 ranks");
    refuses("num_ranks 2\nrank 0 {\ncalc 1\nrank 1 {\n", 4, 1, "rank 0, begun in line 2, has no end");
    refuses("num_ranks 1\nrank 0 {\ncalc 1\n", 3, 1, "rank 0, begun in line 2, has no end");
    refuses("num_ranks 1\n}\n", 2, 1, "closes nothing");
    refuses("num_ranks 1\ncalc 5\n", 2, 1, "outside of a rank");
    refuses("num_ranks 1\na requires b\n", 2, 1, "outside of a rank");
    refuses("num_ranks 1\nrank 0 {\n}\n", 3, 1, "has no operation");
}

#[test]
fn dependencies_name_labels_that_are_defined_above() {
    refuses_in_rank("a: calc 5\na requires b", 4, 12, "has the label `b`; write `b:` before");
    refuses_in_rank("a: calc 5\n  b requires a", 4, 3, "has the label `b`");
    refuses_in_rank("a: calc 5\na requires b\ncalc 1\nb: calc 1", 4, 12, "only defined in line 6");
    refuses_in_rank("a: calc 5\na requires a", 4, 12, "waits for itself");
    refuses_in_rank("a: calc 5\na irequires a", 4, 13, "waits for itself");
}

#[test]
fn a_circle_is_reported_by_its_labels() {
    let body = "x: calc 1\na: calc 5\n b: calc 5\nc: calc 5\na requires b\nb irequires c\nc requires a\nx requires a";
    refuses_in_rank(body, 4, 1, "`a` waits for `b` waits for `c` waits for `a`; none of them can ever start");
    let many: String = (0..20)
        .map(|i| format!("l{i}: calc 1\n"))
        .chain((0..20).map(|i| format!("l{i} requires l{}\n", (i + 1) % 20)))
        .collect();
    refuses_in_rank(&many, 3, 1, "`l7` waits for 12 more waits for `l0`;");
}

#[test]
fn peers_are_ranks() {
    refuses_in_rank("calc 1\nsend 5b to 4", 4, 12, "its peer is rank 4, but the ranks are 0 to 3");
    refuses_in_rank("recv 5b from  7 tag 1", 3, 15, "its peer is rank 7");
}

#[test]
fn garbage_is_refused_and_shown_without_harm() {
    let (line, column, message) = refused(b"num_ranks 1\nrank 0 {\ncalc 5\xff\x1b[2J\n}\n");
    assert_eq!((line, column), (3, 7));
    assert!(message.contains(r"found `\xff\x1b[`"), "{message}");
    refused(b"num_ranks 1\nrank 0 {\ncalc\r 5\n}\n");
    refused(&[0; 100]);
    let long = format!("num_ranks 1\nrank 0 {{\n{}\n", "x".repeat(MAX_LINE + 1));
    assert_eq!(refused(long.as_bytes()).0, 3);
    assert!(refused(long.as_bytes()).2.contains("longer than 65535 bytes"));
    let longest = format!("num_ranks 1\nrank 0 {{\n{}\r\n", "x".repeat(MAX_LINE));
    assert!(refused(longest.as_bytes()).2.contains("unknown word"));
}

#[test]
fn operations_are_found_again() {
    let text =
        "num_ranks 2\nrank 0 {\na: calc 1\n\ncalc 2\na: calc 3\n}\nrank 1 {\n// b: calc 1\nb: calc 4\n}\n";
    let place = |line, label: Option<&str>| Some(Place { line, label: label.map(str::to_owned) });
    let wanted = [(1, 0), (0, 1), (0, 9), (0, 2), (0, 1), (7, 0), (0, 0)];
    assert_eq!(
        locate(text.as_bytes(), &wanted).unwrap(),
        [
            place(10, Some("b")),
            place(5, None),
            None,
            place(6, Some("a")),
            place(5, None),
            None,
            place(3, Some("a"))
        ]
    );
}
