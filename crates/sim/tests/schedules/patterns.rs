//! Patterns with random parameters.

use std::convert::Infallible;

use quell_sim::loggops::{PerByte, Shape};
use quell_sim::pattern::{AnyPattern, LIST, Params, Steps, UnrollTo, by_name, unroll};

use super::listed::{Listed, Op};
use super::{Dice, Schedule, levels, ranges, scale_and_net, strikes};

/// The `seed`-th pattern, its name, and the list of its operations on some network.
pub fn pattern(seed: u64) -> (&'static str, Steps<AnyPattern>, Schedule) {
    let dice = &mut Dice::new(!seed);
    let (scale, net) = scale_and_net(dice);
    let name = LIST[seed as usize % LIST.len()].name;
    let ranks = 1 + dice.below(20) as u32;
    let params = Params {
        ranks,
        bytes: dice.below(100),
        iterations: 1 + dice.below(3) as u32,
        root: dice.below(u64::from(ranks)) as u32,
        nway: 1 + dice.below(4) as u32,
        segment_bytes: 1 + dice.below(40),
        periodic: dice.below(2) == 0,
        work_ns: dice.below(3 * scale),
        optimizer_ns: dice.below(scale),
        node_ranks: 1 + dice.below(6) as u32,
        buckets: 1 + dice.below(4) as u32,
        blocks: 1 + dice.below(4) as u32,
        reduce_per_byte: PerByte::from_femtoseconds(dice.below(2_000_000)),
        ..Params::default()
    };
    let steps = by_name(name, &params).unwrap();
    let mut list = List(vec![]);
    match unroll(&steps, &mut list) {
        Ok(()) => {}
        Err(never) => match never {},
    }
    let program = Listed::new(list.0);
    let noise = dice.once_in(2).then(|| strikes(dice, &steps, &net, scale));
    let ranges = ranges(dice, scale, &net);
    let levels = levels(dice, scale);
    (name, steps, Schedule { program, net, ranges, levels, strikes: noise })
}

struct List(Vec<Vec<Op>>);

impl UnrollTo for List {
    type Error = Infallible;

    fn begin_rank(&mut self, _: u32) -> Result<(), Infallible> {
        self.0.push(vec![]);
        Ok(())
    }

    fn op(&mut self, shape: &Shape, peer: u32) -> Result<(), Infallible> {
        self.0.last_mut().unwrap().push(Op::new(*shape, peer));
        Ok(())
    }

    fn requires(&mut self, op: u32, on: u32) -> Result<(), Infallible> {
        self.0.last_mut().unwrap()[op as usize].requires.push(on as usize);
        Ok(())
    }

    fn end_rank(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
