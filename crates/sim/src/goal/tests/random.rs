//! Random schedules in all their forms.

use proptest::prelude::*;

use super::*;
use crate::loggops::{ANY, Kind, Shape};

const RANKS: u32 = 3;

fn op() -> impl Strategy<Value = (Shape, u32)> {
    let kind = prop_oneof![Just(Kind::Send), Just(Kind::Recv), Just(Kind::Calc)];
    let size = prop_oneof![0u64..3, 0..=MAX_SIZE];
    let tag = prop_oneof![0u32..3, any::<u32>()];
    (kind, size, tag, 0..RANKS + 1, prop_oneof![0u8..2, any::<u8>()], 0u8..3).prop_map(
        |(kind, size, tag, peer, cpu, nic)| {
            let any = if kind == Kind::Recv { ANY } else { 0 };
            (Shape { kind, cpu, nic, tag, size }, if peer == RANKS { any } else { peer })
        },
    )
}

type Rank = (Vec<(Shape, u32)>, Vec<(usize, usize, bool)>);

fn rank() -> impl Strategy<Value = Rank> {
    let edges = proptest::collection::vec((0usize..99, 0usize..99, any::<bool>()), 0..20);
    (proptest::collection::vec(op(), 0..12), edges)
}

/// With `along`, edges follow one shuffled order of the operations, so that there is no cycle; without, they only lead forward.
fn build(ranks: &[Rank], along: bool) -> Option<Schedule> {
    let mut builder = ScheduleBuilder::new(RANKS);
    for (ops, edges) in ranks {
        builder.begin_rank();
        for (shape, peer) in ops {
            builder.op(*shape, *peer);
        }
        let place = |op: u32| if along { (op * 7 + 3) % 13 } else { op };
        for (a, b, at_start) in edges.iter().filter(|_| !ops.is_empty()) {
            let (a, b) = ((a % ops.len()) as u32, (b % ops.len()) as u32);
            let (first, second) = if place(a) < place(b) { (a, b) } else { (b, a) };
            match (first == second, at_start) {
                (true, _) => (),
                (_, true) => builder.irequires(second, first),
                (_, false) => builder.requires(second, first),
            }
        }
        builder.end_rank();
    }
    match builder.finish() {
        Ok(schedule) => Some(schedule),
        Err(BuildError::Empty) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Runs a rank in the order in which its operations become free; returns how many did.
fn walk(schedule: &Schedule, rank: u32) -> u32 {
    let mut free = Vec::new();
    let mut state = schedule.begin(rank, &mut free);
    let mut at = 0;
    while let Some(next) = free.get(at).map(|free| free.op) {
        schedule.started(rank, &mut state, next, at as u64, &mut free);
        schedule.done(rank, &mut state, next, at as u64, &mut free);
        at += 1;
    }
    assert_eq!(schedule.unfreed(rank, &state), 0);
    at as u32
}

proptest! {
    #[test]
    fn survive_every_form_and_run(ranks in proptest::collection::vec(rank(), RANKS as usize), along: bool) {
        let Some(schedule) = build(&ranks, along) else { return Ok(()) };
        survives(&schedule)?;
    }

    /// Each operation needs all of the step before its own; with `stray`, an operation of the last rank needs only a start.
    #[test]
    fn steps_survive_every_form_and_run(
        ranks in proptest::collection::vec(proptest::collection::vec((op(), any::<bool>()), 1..12), RANKS as usize),
        stray: bool,
    ) {
        let mut builder = ScheduleBuilder::new(RANKS);
        for ops in &ranks {
            builder.begin_rank();
            let mut before = 0..0;
            for (number, ((shape, peer), begins)) in (0..).zip(ops) {
                builder.op(*shape, *peer);
                if *begins {
                    before = before.end..number;
                }
                before.clone().for_each(|on| builder.requires(number, on));
            }
            if stray && builder.rank() == RANKS - 1 && ops.len() > 1 {
                builder.irequires(1, 0);
            }
            builder.end_rank();
        }
        let schedule = builder.finish().unwrap();
        prop_assert_eq!(schedule.steps.is_some(), !stray || ranks[RANKS as usize - 1].len() == 1);
        survives(&schedule)?;
    }

    #[test]
    fn what_matching_finds_is_so(ranks in proptest::collection::vec(rank(), RANKS as usize)) {
        let Some(schedule) = build(&ranks, false) else { return Ok(()) };
        let certain = check(&schedule).list().iter().any(|finding| matches!(
            finding.problem,
            Problem::SendUnreceived { .. } | Problem::ReceiveUnsent { .. } | Problem::MoreSends { .. } | Problem::MoreReceives { .. }
        ));
        if certain {
            prop_assert!(!all_can_match(&schedule));
        }
    }

    #[test]
    fn damage_gives_an_answer_or_an_error(
        ranks in proptest::collection::vec(rank(), RANKS as usize),
        hits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let Some(schedule) = build(&ranks, true) else { return Ok(()) };
        for mut bytes in [text_of(&schedule).into_bytes(), binary_of(&schedule)] {
            for (at, byte) in &hits {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            let _ = check_text(&bytes[..]);
            let _ = check_binary(&bytes[..]);
            in_parts_as_whole(&bytes)?;
        }
    }
}

/// A schedule is the same in every form, and each of its operations becomes free.
fn survives(schedule: &Schedule) -> Result<(), TestCaseError> {
    let text = text_of(schedule);
    prop_assert_eq!(&read(&text), schedule, "{}", text);
    in_parts_as_whole(text.as_bytes())?;
    prop_assert_eq!(&read_binary(&binary_of(schedule)[..]).unwrap(), schedule);
    for rank in 0..RANKS {
        prop_assert_eq!(walk(schedule, rank), schedule.ops(rank));
    }
    check(schedule);
    Ok(())
}

/// Parts of any length give what the whole text gives, or nothing.
fn in_parts_as_whole(text: &[u8]) -> Result<usize, TestCaseError> {
    let mut notes = Findings::default();
    let whole = read_text(text, &mut notes).ok().filter(|_| notes.is_empty());
    let shares = [1u64, 7, 30, 64, text.len() as u64 / 2];
    let mut found = 0;
    for share in shares.into_iter().filter(|share| *share > 0) {
        if let Some(parts) = crate::goal::text::read_in_shares(text, text.len() as u64, 2, share) {
            prop_assert_eq!(Some(&parts), whole.as_ref(), "shares of {}", share);
            found += 1;
        }
    }
    Ok(found)
}

#[test]
fn a_plain_text_is_read_in_parts() {
    let mut text = String::from("// a comment\nnum_ranks 300\n");
    for rank in 0..300u32 {
        let (to, from) = ((rank + 1) % 300, (rank + 299) % 300);
        let bytes = rank % 7 + 1;
        text += &format!(
            "rank {rank} {{\na: send {bytes}b to {to} tag 3\nb: recv {}b from {from} tag 3 cpu 1\nb requires a\n}}\n",
            from % 7 + 1
        );
    }
    let whole = read(&text);
    let parts = |text: &str| crate::goal::text::read_in_shares(text.as_bytes(), text.len() as u64, 2, 500);
    assert_eq!(parts(&text), Some(whole));
    assert_eq!(parts(&text.replace("rank 200 {", "rank 201 {")), None, "ranks out of order");
    assert_eq!(parts(&text.replace("rank 200 {", "/*\nrank 200 {")), None, "an open comment");
    assert_eq!(parts(&text.replace("\n}\nrank 200 {", "\nrank 200 {")), None, "a missing brace");
    assert_eq!(parts(&text.replace("a: send 1b to 8 ", "b: send 1b to 8 ")), None, "a label twice");
    assert_eq!(parts(&text[..text.len() - 200]), None, "a truncated text");
}

/// Whether a matching exists for every message and every receive, if any order is possible (augmenting paths).
fn all_can_match(schedule: &Schedule) -> bool {
    (0..RANKS).all(|to| {
        let mut sends = Vec::new();
        let mut receives = Vec::new();
        for rank in 0..RANKS {
            for op in schedule.rank_ops(rank).iter() {
                match op.shape.kind {
                    Kind::Send if op.peer == to => sends.push((rank, op.shape.tag)),
                    Kind::Recv if rank == to => receives.push((op.peer, op.shape.tag)),
                    _ => (),
                }
            }
        }
        let fits = |a: u32, b: u32| a == b || a == ANY || b == ANY;
        let mut taken: Vec<Option<usize>> = vec![None; receives.len()];
        let may = |send: usize, receive: usize| {
            let ((from, tag), (of, other)): ((u32, u32), (u32, u32)) = (sends[send], receives[receive]);
            fits(from, of) && fits(tag, other)
        };
        sends.len() == receives.len()
            && (0..sends.len()).all(|send| place(send, &may, &mut taken, &mut vec![false; receives.len()]))
    })
}

fn place(
    send: usize,
    may: &dyn Fn(usize, usize) -> bool,
    taken: &mut [Option<usize>],
    tried: &mut [bool],
) -> bool {
    (0..taken.len()).any(|receive| {
        if tried[receive] || !may(send, receive) {
            return false;
        }
        tried[receive] = true;
        let free = taken[receive].is_none_or(|other| place(other, may, taken, tried));
        if free {
            taken[receive] = Some(send);
        }
        free
    })
}
