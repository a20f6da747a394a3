use super::*;
use crate::loggops::free::{Layout, Single};

fn free(cpu: u64) -> Single {
    let mut free = Single::new(Layout { cpus: 1, nics: 1 });
    *free.cpu_mut(0) = cpu;
    free
}

fn event(what: What, time: u64, age: u64, op: u32) -> Event {
    Event { time, age, op, what, ..Event::default() }
}

fn pending(events: impl IntoIterator<Item = Event>) -> Pending {
    let mut pending = Pending::default();
    events.into_iter().for_each(|event| pending.push(event, 0));
    pending
}

/// Takes all events, each when its turn has come.
fn drained(pending: &mut Pending, free: &Single) -> Vec<Event> {
    std::iter::from_fn(|| {
        let next = pending.next(free, 0)?;
        let turn = pending.turn(next, 0);
        let event = pending.take(next).unwrap();
        assert_eq!(turn, Some((event.start(free), event.age, event.tie(0))));
        Some(event)
    })
    .collect()
}

/// Few events are in a list, more in a longer one, and very many in heaps.
const NUMBERS: [u32; 7] = [1, 2, 3, 4, 32, 33, 80];

#[test]
fn events_take_turns_by_start_age_and_tie() {
    let free = free(50);
    for number in NUMBERS {
        // Many start when the CPU is free, at 50; some have the same age.
        let all = (0..number).map(|op| {
            let at = u64::from(op);
            let what = if op % 5 == 4 { What::Recv } else { What::Calc };
            event(what, at * 37 % 97, at * 7 % 4, op)
        });
        let all: Vec<Event> = all.collect();
        let mut pending = pending(all.iter().copied());
        // Twice, because a list that was in heaps must work as before.
        for _ in 0..2 {
            let mut expected: Vec<&Event> = all.iter().collect();
            expected.sort_by_key(|event| {
                let start = if event.what == What::Calc { event.time.max(50) } else { event.time };
                // Of equal age a receive goes before work, then the earlier operation.
                (start, event.age, event.what != What::Recv, event.op)
            });
            let expected: Vec<u32> = expected.iter().map(|event| event.op).collect();
            let found: Vec<u32> = drained(&mut pending, &free).iter().map(|event| event.op).collect();
            assert_eq!(found, expected);
            assert!(!pending.few.is_away() && pending.few.len() == 0);
            all.iter().for_each(|event| pending.push(*event, 0));
        }
    }
}

#[test]
fn a_receive_is_seen_wherever_it_waits() {
    for number in NUMBERS {
        let calcs = || (0..number).map(|op| event(What::Calc, 0, 0, op));
        assert!(!pending(calcs()).holds_receive());
        for at in 0..number {
            let one =
                calcs().map(|calc| if calc.op == at { Event { what: What::Recv, ..calc } } else { calc });
            let mut pending = pending(one);
            assert!(pending.holds_receive(), "{at} of {number}");
            let free = free(0);
            // Receives go before work.
            let next = pending.next(&free, 0).unwrap();
            assert_eq!(pending.take(next).map(|event| event.op), Some(at));
            assert!(!pending.holds_receive(), "{at} of {number} was taken");
        }
    }
}

/// What was looked at while the CPU was busy keeps its start, even if the CPU is free earlier later on.
#[test]
fn what_had_its_turn_keeps_its_start() {
    for number in NUMBERS {
        let early = (0..number).map(|op| event(What::Calc, 5, 1, op));
        // The turn itself is not before the turn; one of a lower age is.
        let late =
            [event(What::Calc, 10, 3, 900), event(What::Calc, 10, 2, 901), event(What::Calc, 11, 0, 902)];
        let mut pending = pending(early.chain(late));
        assert_eq!(pending.next(&free(100), 0).map(|next| next.start), Some(100));
        pending.settle(&free(100), (10, 3, 0), 0);
        let found: Vec<(u32, u64)> =
            drained(&mut pending, &free(0)).iter().map(|event| (event.op, event.time)).collect();
        let mut expected = vec![(900, 10), (902, 11)];
        expected.extend((0..number).map(|op| (op, 100)));
        expected.push((901, 100));
        assert_eq!(found, expected);
    }
}

#[test]
fn a_queued_event_yields_to_an_earlier_turn() {
    let free = free(0);
    for number in NUMBERS {
        let mut pending = pending((0..number).map(|op| event(What::Calc, 10, 5, op + 10)));
        let found = pending.next(&free, 0).unwrap();
        let yields = |time, age, op| {
            let held = event(What::Calc, time, age, op);
            pending.yields(found, &held, Next::held(&held, &free), 0)
        };
        assert!(yields(9, 9, 99) && !yields(11, 0, 0), "by start");
        assert!(yields(10, 4, 99) && !yields(10, 6, 0), "by age");
        assert!(yields(10, 5, 9) && !yields(10, 5, 11) && !yields(10, 5, 10), "by operation");
    }
}

#[test]
fn keyed_events_are_compared_by_their_keys() {
    let keyed = |key: u64, op| Keyed { key, event: event(What::Calc, 0, 0, op) };
    assert_eq!(keyed(1, 2), keyed(1, 3));
    assert_ne!(keyed(1, 2), keyed(2, 2));
    assert!(keyed(1, 9) < keyed(2, 0));
}
