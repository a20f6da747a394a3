//! A program as an explicit list of operations.

use std::fmt;

use quell_sim::loggops::{ANY, Kind, Program, ReadyOp, ReadyTrigger, Shape, Shapes};

/// An operation and its dependencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    pub shape: Shape,
    /// [`ANY`] for a receive from any rank, 0 for work.
    pub peer: u32,
    /// Operations of the same rank, by number, that must be done before it.
    pub requires: Vec<usize>,
    /// Operations that must have started before it.
    pub irequires: Vec<usize>,
}

impl Op {
    pub fn new(shape: Shape, peer: u32) -> Self {
        Self { shape, peer, requires: vec![], irequires: vec![] }
    }
}

/// The operations of each rank.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    pub ranks: Vec<Vec<Op>>,
    shapes: Vec<Shape>,
    numbers: Vec<Vec<u32>>,
}

impl Listed {
    pub fn new(ranks: Vec<Vec<Op>>) -> Self {
        let mut shapes = Shapes::default();
        let numbers =
            ranks.iter().map(|ops| ops.iter().map(|op| shapes.number(op.shape)).collect()).collect();
        Self { ranks, shapes: shapes.into_list(), numbers }
    }

    fn highest(&self, of: impl Fn(&Shape) -> u8) -> u32 {
        self.shapes.iter().map(|shape| u32::from(of(shape)) + 1).max().unwrap_or(1)
    }

    fn free(&self, rank: u32, op: usize, ready: u64) -> ReadyOp {
        let rank = rank as usize;
        ReadyOp { op: op as u32, peer: self.ranks[rank][op].peer, shape: self.numbers[rank][op], ready }
    }

    /// Counts one dependency as met for each operation that has `op` among those in `needs`.
    fn met(
        &self,
        (rank, op, at): (u32, u32, u64),
        state: &mut [Needs],
        free: &mut Vec<ReadyOp>,
        needs: impl Fn(&Op) -> &[usize],
    ) {
        for (number, dependent) in self.ranks[rank as usize].iter().enumerate() {
            for _ in needs(dependent).iter().filter(|need| **need == op as usize) {
                let needs = &mut state[number];
                // Wraps if LogGOPSim ends an operation twice.
                needs.open = needs.open.wrapping_sub(1);
                needs.ready = needs.ready.max(at);
                if needs.open == 0 {
                    needs.freed = true;
                    free.push(self.free(rank, number, needs.ready));
                }
            }
        }
    }
}

/// Dependencies of an operation that are not met.
#[derive(Clone, Debug)]
pub struct Needs {
    open: u32,
    ready: u64,
    freed: bool,
}

impl Program for Listed {
    type Rank = Vec<Needs>;

    fn ranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    fn cpus(&self) -> u32 {
        self.highest(|shape| shape.cpu)
    }

    fn nics(&self) -> u32 {
        self.highest(|shape| shape.nic)
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let all = || self.ranks.iter().flatten();
        Some((all().count() as u64, all().filter(|op| op.shape.kind == Kind::Send).count() as u64))
    }

    fn frees(&self) -> ReadyTrigger {
        let starts = self.ranks.iter().flatten().any(|op| !op.irequires.is_empty());
        if starts { ReadyTrigger::AtStarts } else { ReadyTrigger::AtEnds }
    }

    fn begin(&self, rank: u32, free: &mut Vec<ReadyOp>) -> Self::Rank {
        let ops = &self.ranks[rank as usize];
        let open = |op: &Op| (op.requires.len() + op.irequires.len()) as u32;
        free.extend((0..ops.len()).filter(|op| open(&ops[*op]) == 0).map(|op| self.free(rank, op, 0)));
        ops.iter().map(|op| Needs { open: open(op), ready: 0, freed: open(op) == 0 }).collect()
    }

    fn started(&self, rank: u32, state: &mut Self::Rank, op: u32, at: u64, free: &mut Vec<ReadyOp>) {
        self.met((rank, op, at), state, free, |dependent| &dependent.irequires);
    }

    fn done(&self, rank: u32, state: &mut Self::Rank, op: u32, at: u64, free: &mut Vec<ReadyOp>) {
        self.met((rank, op, at), state, free, |dependent| &dependent.requires);
    }

    fn unfreed(&self, _rank: u32, state: &Self::Rank) -> u64 {
        state.iter().filter(|needs| !needs.freed).count() as u64
    }
}

/// Formats as GOAL text.
impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "num_ranks {}", self.ranks.len())?;
        let any = |number: u32| if number == ANY { "-1".to_owned() } else { number.to_string() };
        for (rank, ops) in self.ranks.iter().enumerate() {
            writeln!(f, "\nrank {rank} {{")?;
            for (number, Op { shape: s, peer, .. }) in ops.iter().enumerate() {
                let ends = || format!("tag {} cpu {} nic {}", any(s.tag), s.cpu, s.nic);
                match s.kind {
                    Kind::Send => writeln!(f, "o{number}: send {}b to {peer} {}", s.size, ends())?,
                    Kind::Recv => writeln!(f, "o{number}: recv {}b from {} {}", s.size, any(*peer), ends())?,
                    Kind::Calc => writeln!(f, "o{number}: calc {} cpu {}", s.size, s.cpu)?,
                }
            }
            for (number, op) in ops.iter().enumerate() {
                for need in &op.requires {
                    writeln!(f, "o{number} requires o{need}")?;
                }
                for need in &op.irequires {
                    writeln!(f, "o{number} irequires o{need}")?;
                }
            }
            writeln!(f, "}}")?;
        }
        Ok(())
    }
}
