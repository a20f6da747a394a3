//! Reduces a failing schedule as far as possible.

use std::cmp::Reverse;
use std::iter::successors;
use std::ops::Range;
use std::time::{Duration, Instant};

use quell_sim::loggops::{ANY, Kind, Network, PerByte, Shape};

use super::Schedule;
use super::listed::{Listed, Op};

/// Time after which the schedule is small enough.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A schedule from which nothing can be removed without losing the failure.
pub fn shrunk(schedule: &Schedule, fails: impl Fn(&Schedule) -> bool) -> Schedule {
    let begun = Instant::now();
    let mut best = schedule.clone();
    while begun.elapsed() < TIMEOUT {
        let Some(less) = smaller(&best).find(&fails) else { break };
        best = less;
    }
    best
}

/// Each way to remove one thing.
fn smaller(whole: &Schedule) -> impl Iterator<Item = Schedule> {
    let ranks = &whole.program.ranks;
    let places: Vec<(usize, usize)> =
        (0..ranks.len()).flat_map(|rank| (0..ranks[rank].len()).map(move |op| (rank, op))).collect();
    let plain = (!whole.ranges.is_empty()).then(|| Schedule { ranges: vec![], ..whole.clone() });
    let level = (!whole.levels.is_empty()).then(|| Schedule { levels: vec![], ..whole.clone() });
    let quiet = whole.strikes.is_some().then(|| Schedule { strikes: None, ..whole.clone() });
    let fewer_ranks = (0..ranks.len()).filter_map(|rank| without_rank(whole, rank));
    let fewer_ops = pieces(ranks).into_iter().map(|(rank, piece)| without_ops(whole, rank, &piece));
    let fewer_needs = places.clone().into_iter().flat_map(|place| with_fewer_needs(whole, place));
    let simpler_ops = places.into_iter().flat_map(|place| with_simpler_op(whole, place));
    quiet
        .into_iter()
        .chain(plain)
        .chain(level)
        .chain(fewer_ranks)
        .chain(fewer_ops)
        .chain(fewer_needs)
        .chain(simpler_ops)
        .chain(with_less_net(whole))
        .chain(with_fewer_detours(whole))
}

fn changed(whole: &Schedule, change: impl FnOnce(&mut Vec<Vec<Op>>)) -> Schedule {
    let mut ranks = whole.program.ranks.clone();
    change(&mut ranks);
    Schedule { program: Listed::new(ranks), ..whole.clone() }
}

/// Removes a rank that does nothing and that no operation names.
fn without_rank(whole: &Schedule, rank: usize) -> Option<Schedule> {
    let ranks = &whole.program.ranks;
    let named = |op: &Op| op.shape.kind != Kind::Calc && op.peer as usize == rank;
    if ranks.len() == 1 || !ranks[rank].is_empty() || ranks.iter().flatten().any(named) {
        return None;
    }
    let mut less = changed(whole, |ranks| {
        ranks.remove(rank);
        let later = |op: &&mut Op| op.peer != ANY && op.peer as usize > rank;
        ranks.iter_mut().flatten().filter(later).for_each(|op| op.peer -= 1);
    });
    if let Some(strikes) = &mut less.strikes {
        strikes.places.remove(rank);
    }
    Some(less)
}

/// Ranges of operations of each rank, long ones first.
fn pieces(ranks: &[Vec<Op>]) -> Vec<(usize, Range<usize>)> {
    let of_rank = |(rank, ops): (usize, &Vec<Op>)| {
        let lengths = successors(Some(ops.len()), |length| (*length > 1).then_some(length / 2));
        let whole = ops.len();
        let runs = lengths.filter(|length| *length > 0).flat_map(move |length| {
            (0..whole).step_by(length).map(move |start| (rank, start..whole.min(start + length)))
        });
        runs.collect::<Vec<_>>()
    };
    let mut pieces: Vec<_> = ranks.iter().enumerate().flat_map(of_rank).collect();
    pieces.sort_by_key(|(_, piece)| Reverse(piece.len()));
    pieces
}

fn without_ops(whole: &Schedule, rank: usize, piece: &Range<usize>) -> Schedule {
    changed(whole, |ranks| {
        ranks[rank].drain(piece.clone());
        for needs in ranks[rank].iter_mut().flat_map(|op| [&mut op.requires, &mut op.irequires]) {
            needs.retain(|need| !piece.contains(need));
            needs.iter_mut().filter(|need| **need >= piece.end).for_each(|need| *need -= piece.len());
        }
    })
}

fn with_fewer_needs(whole: &Schedule, (rank, number): (usize, usize)) -> Vec<Schedule> {
    let op = &whole.program.ranks[rank][number];
    let requires = (0..op.requires.len()).map(|need| {
        changed(whole, |ranks| {
            ranks[rank][number].requires.remove(need);
        })
    });
    let irequires = (0..op.irequires.len()).map(|need| {
        changed(whole, |ranks| {
            ranks[rank][number].irequires.remove(need);
        })
    });
    requires.chain(irequires).collect()
}

fn with_simpler_op(whole: &Schedule, (rank, number): (usize, usize)) -> Vec<Schedule> {
    let shape = whole.program.ranks[rank][number].shape;
    let simpler = [
        Shape { cpu: 0, ..shape },
        Shape { nic: 0, ..shape },
        Shape { tag: 0, ..shape },
        Shape { size: shape.size.min(1), ..shape },
        Shape { size: shape.size / 2, ..shape },
        Shape { size: shape.size - u64::from((1..100).contains(&shape.size)), ..shape },
    ];
    let less = simpler.into_iter().filter(|simpler| *simpler != shape);
    less.map(|simpler| changed(whole, |ranks| ranks[rank][number].shape = simpler)).collect()
}

fn with_less_net(whole: &Schedule) -> Vec<Schedule> {
    let none = PerByte::default();
    let net = whole.net;
    let mut less: Vec<_> = [0, 1, 2]
        .into_iter()
        .flat_map(|power| {
            let lower = |number: u64| [0, number / 2, number - u64::from((1..100).contains(&number))][power];
            let mut nets = [net; 3];
            nets[0].latency = lower(net.latency);
            nets[1].overhead = lower(net.overhead);
            nets[2].gap = lower(net.gap);
            nets
        })
        .collect();
    less.push(Network { gap_per_byte: none, ..net });
    less.push(Network { overhead_per_byte: none, ..net });
    let differs = less.into_iter().filter(|less| *less != net);
    differs.map(|net| Schedule { net, ..whole.clone() }).collect()
}

/// Keeps the last detour, which defines the length of a trace under LogGOPSim's rule.
fn with_fewer_detours(whole: &Schedule) -> Vec<Schedule> {
    let traces = whole.strikes.iter().flat_map(|strikes| strikes.traces.iter().enumerate());
    let detours = traces.flat_map(|(trace, (detours, _))| (1..detours.len()).map(move |n| (trace, n - 1)));
    detours
        .map(|(trace, detour)| {
            let mut less = whole.clone();
            less.strikes.iter_mut().for_each(|strikes| {
                strikes.traces[trace].0.remove(detour);
            });
            less
        })
        .collect()
}
