//! Compares the simulator's times with the measured ones.

use quell_sim::goal::{BuildError, ScheduleBuilder};
use quell_sim::loggops::{self, Network, Noise, Rules, Run, Shape, SizeRange};

use super::document::{Check, Comparison, Parameters, Range};
use super::samples::{Checked, Samples};

/// Maximum size of a job that is simulated: a check needs no more.
const MOST_RECEIVERS: u64 = 4096;
const ANSWER: u32 = 1;

/// Each size that was checked.
pub(super) fn checks(
    samples: &Samples,
    overall: &Parameters,
    ranges: &[Range],
    eager_limit: u64,
) -> Vec<Check> {
    let sized: Vec<SizeRange> = ranges.iter().map(|range| range.sized(eager_limit)).collect();
    let overall = (overall.net(eager_limit), &[][..]);
    let by_size = (overall.0, &sized[..]);
    let check = |checked: &Checked| {
        let (count, receivers) = (samples.count as u32, samples.receivers.min(MOST_RECEIVERS) as u32);
        let half = |net| Some(pingpong(net, checked.bytes, count)? / f64::from(count) / 2.0);
        let each = |net| Some(scatter(net, checked.bytes, count, receivers)? / f64::from(count));
        Some(Check {
            bytes: checked.bytes,
            pingpong: compare(checked.half, [by_size, overall].map(half))?,
            scatter: compare(checked.scatter, [by_size, overall].map(each))?,
        })
    };
    samples.checked.iter().filter_map(check).collect()
}

fn compare(measured_ns: f64, simulated: [Option<f64>; 2]) -> Option<Comparison> {
    let [simulated_ns, simulated_overall_ns] = [simulated[0]?, simulated[1]?];
    let deviation = |ns: f64| 100.0 * (ns / measured_ns.max(1.0) - 1.0);
    Some(Comparison {
        measured_ns,
        simulated_ns,
        deviation_percent: deviation(simulated_ns),
        simulated_overall_ns,
        overall_deviation_percent: deviation(simulated_overall_ns),
    })
}

/// The overall parameters, and those for ranges of sizes.
type Parameterised<'a> = (Network, &'a [SizeRange]);

/// Runs a schedule of ranks whose operations follow one another; returns when its last rank is done, in nanoseconds.
fn play((net, ranges): Parameterised<'_>, ranks: &[Vec<(Shape, u32)>]) -> Option<f64> {
    let schedule = || -> Result<_, BuildError> {
        let mut builder = ScheduleBuilder::new(ranks.len() as u32);
        for rank in ranks {
            builder.begin_rank();
            let mut before = None;
            for &(shape, peer) in rank {
                let op = builder.op(shape, peer);
                before.into_iter().for_each(|before| builder.requires(op, before));
                before = Some(op);
            }
            builder.end_rank();
        }
        builder.finish()
    };
    let run = Run {
        net,
        ranges,
        levels: &[],
        rules: Rules::Physical,
        noise: &Noise::None,
        threads: 1,
        progress: quell_sim::loggops::NO_PROGRESS,
    };
    let outcome = loggops::run(&schedule().ok()?, &run).ok()?;
    outcome.stuck.is_none().then(|| outcome.last().1 as f64)
}

/// The time of `count` round trips in a row.
pub(super) fn pingpong(net: Parameterised<'_>, bytes: u64, count: u32) -> Option<f64> {
    let (send, receive) = (Shape::send(bytes, 0), Shape::recv(bytes, 0));
    let rank = |first: Shape, then: Shape, peer: u32| {
        (0..count).flat_map(|_| [(first, peer), (then, peer)]).collect::<Vec<_>>()
    };
    play(net, &[rank(send, receive, 1), rank(receive, send, 0)])
}

/// The time of `count` linear scatters in a row, until the last receiver's answer of one byte.
pub(super) fn scatter(net: Parameterised<'_>, bytes: u64, count: u32, receivers: u32) -> Option<f64> {
    let (send, receive) = (Shape::send(bytes, 0), Shape::recv(bytes, 0));
    let mut root: Vec<_> =
        (0..count).flat_map(|_| (1..=receivers).map(|receiver| (send, receiver))).collect();
    root.push((Shape::recv(1, ANSWER), receivers));
    let mut ranks = vec![vec![(receive, 0); count as usize]; receivers as usize];
    ranks.last_mut()?.push((Shape::send(1, ANSWER), 0));
    ranks.insert(0, root);
    play(net, &ranks)
}
