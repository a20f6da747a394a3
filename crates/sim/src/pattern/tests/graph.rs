//! A program as a graph of operations, as [`unroll`] lists it.

use std::convert::Infallible;

use super::*;
use crate::loggops::{Program, ReadyOp, Shapes};

#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) shape: u32,
    pub(super) peer: u32,
    pub(super) requires: Vec<u32>,
    /// The operations that require this one.
    frees: Vec<u32>,
}

/// The operations of every rank.
#[derive(Debug, Default)]
pub(super) struct Graph {
    shapes: Shapes,
    list: Vec<Shape>,
    pub(super) ranks: Vec<Vec<Operation>>,
    pub(super) edges: u64,
}

impl UnrollTo for Graph {
    type Error = Infallible;

    fn begin_rank(&mut self, rank: u32) -> Result<(), Infallible> {
        assert_eq!(self.ranks.len(), rank as usize);
        self.ranks.push(Vec::new());
        Ok(())
    }

    fn op(&mut self, shape: &Shape, peer: u32) -> Result<(), Infallible> {
        let shape = self.shapes.number(*shape);
        let rank = self.ranks.last_mut().expect("a rank was begun");
        rank.push(Operation { shape, peer, requires: Vec::new(), frees: Vec::new() });
        Ok(())
    }

    fn requires(&mut self, op: u32, on: u32) -> Result<(), Infallible> {
        self.edges += 1;
        let rank = self.ranks.last_mut().expect("a rank was begun");
        assert!((on as usize) < rank.len() && on != op, "{op} requires {on}");
        assert!(!rank[op as usize].requires.contains(&on), "{op} requires {on} twice");
        rank[op as usize].requires.push(on);
        rank[on as usize].frees.push(op);
        Ok(())
    }

    fn end_rank(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

impl Graph {
    /// All operations of a pattern. Shapes keep the pattern's numbers if the pattern lists each only once.
    pub(super) fn from_steps<P: Pattern>(steps: &Steps<P>) -> Self {
        let mut graph = Self::default();
        for &shape in steps.pattern().shapes() {
            graph.shapes.number(shape);
        }
        let Ok(()) = unroll(steps, &mut graph);
        graph.list = graph.shapes.clone().into_list();
        graph
    }

    pub(super) fn shape(&self, operation: &Operation) -> Shape {
        self.list[operation.shape as usize]
    }

    /// The number of a pattern's shape in this graph.
    pub(super) fn number(&self, shape: &Shape) -> u32 {
        self.list.iter().position(|known| known == shape).expect("a shape of the pattern") as u32
    }
}

/// For each operation of a rank, the number of operations that it still waits for, and when the last one was done.
pub(super) type Waits = Vec<(usize, u64)>;

impl Program for Graph {
    type Rank = Waits;

    fn ranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    fn cpus(&self) -> u32 {
        2
    }

    fn nics(&self) -> u32 {
        1
    }

    fn shapes(&self) -> &[Shape] {
        &self.list
    }

    fn totals(&self) -> Option<(u64, u64)> {
        None
    }

    fn begin(&self, rank: u32, free: &mut Vec<ReadyOp>) -> Waits {
        let operations = &self.ranks[rank as usize];
        for (op, operation) in (0..).zip(operations) {
            if operation.requires.is_empty() {
                free.push(ReadyOp { op, peer: operation.peer, shape: operation.shape, ready: 0 });
            }
        }
        operations.iter().map(|operation| (operation.requires.len(), 0)).collect()
    }

    fn started(&self, _: u32, _: &mut Waits, _: u32, _: u64, _: &mut Vec<ReadyOp>) {}

    fn done(&self, rank: u32, waits: &mut Waits, done: u32, at: u64, free: &mut Vec<ReadyOp>) {
        let operations = &self.ranks[rank as usize];
        for &op in &operations[done as usize].frees {
            let operation = &operations[op as usize];
            let (open, ready) = &mut waits[op as usize];
            (*open, *ready) = (*open - 1, (*ready).max(at));
            if *open == 0 {
                free.push(ReadyOp { op, peer: operation.peer, shape: operation.shape, ready: *ready });
            }
        }
    }

    fn unfreed(&self, _: u32, waits: &Waits) -> u64 {
        waits.iter().filter(|(open, _)| *open > 0).count() as u64
    }
}
