use super::*;
use crate::draws::Draws;

fn entry(source: u32, tag: u32, op: u32) -> Entry {
    Entry { envelope: Envelope { source, tag }, op, shape: 0, end: 0 }
}

#[test]
fn an_envelope_is_exact_if_it_names_both() {
    let exact = |source, tag| Envelope { source, tag }.is_exact();
    assert!(exact(0, 0));
    assert!(!exact(ANY, 0) && !exact(0, ANY) && !exact(ANY, ANY));
}

/// A queue is a list in the order of arrival, from which the first match is taken.
#[test]
fn a_queue_of_any_length_is_a_list() {
    let draws = Draws::new(11, &[]);
    let (mut queue, mut list) = (Queue::default(), Vec::<Entry>::new());
    let mut longest = 0;
    for turn in 0..20_000u32 {
        let draw = |number: u64, bound| draws.below(u64::from(turn) * 4 + number, bound) as u32;
        let part = |number, bound| match draw(number, 12) {
            0 => ANY,
            _ => draw(number, bound),
        };
        let envelope = Envelope { source: part(0, 6), tag: part(1, 5) };
        // It grows for a while, then it shrinks to nothing.
        let more = if turn % 2_000 < 1_000 { 62 } else { 25 };
        if draw(2, 100) < more {
            let entry = Entry { envelope, op: turn, shape: 0, end: 0 };
            queue.push(entry);
            list.push(entry);
        } else {
            let at = list.iter().position(|entry| entry.envelope.matches(envelope));
            let expected = at.map(|at| list[at].op);
            assert_eq!(queue.peek(envelope).map(|entry| entry.op), expected, "turn {turn}");
            assert_eq!(queue.take(envelope).map(|entry| entry.op), expected, "turn {turn}");
            at.map(|at| list.remove(at));
        }
        assert_eq!(queue.is_empty(), list.is_empty());
        assert!(queue.iter().map(|entry| entry.op).eq(list.iter().map(|entry| entry.op)));
        assert_eq!(queue.iter().count(), list.len());
        longest = longest.max(list.len());
    }
    assert!(longest > 2 * FEW, "{longest}");
    for entry in std::mem::take(&mut list) {
        assert_eq!(queue.take(Envelope { source: ANY, tag: ANY }).map(|found| found.op), Some(entry.op));
    }
    assert!(queue.is_empty() && queue.more == 0);
    assert!(queue.rest.is_some_and(|rest| rest.many.is_none() && rest.few.is_empty()));
}

#[test]
fn a_long_list_forgets_what_was_taken() {
    let mut many = Many::default();
    for op in 0..6 {
        many.push(entry(if op % 2 == 0 { ANY } else { 7 }, op, op));
    }
    let take = |many: &mut Many, tag| many.take(Envelope { source: 7, tag }).map(|entry| entry.op);
    assert_eq!(take(&mut many, 0), Some(0));
    assert_eq!((many.first, many.len, many.entries.len()), (1, 5, 5));
    assert_eq!(take(&mut many, 4), Some(4));
    assert_eq!((many.first, many.len, many.entries.len()), (1, 4, 5), "a hole");
    assert_eq!((many.index.open.iter().copied().collect::<Vec<_>>(), many.index.exact.len()), (vec![2], 3));
    assert_eq!((take(&mut many, 5), take(&mut many, 5)), (Some(5), None));
    assert_eq!((take(&mut many, 1), take(&mut many, 2), take(&mut many, 3)), (Some(1), Some(2), Some(3)));
    assert_eq!((many.first, many.len, many.entries.len(), many.index.exact.len()), (6, 0, 0, 0));
}
