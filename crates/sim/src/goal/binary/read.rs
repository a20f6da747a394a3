//! From the binary form to a schedule, front to back.

use std::io::Read;

use super::error::{BinaryError, Damage, Part};
use super::input::Input;
use super::{CALC, HEAD_BYTES, MAGIC, MAGIC_BYTES, OP_BYTES, RANGE_BYTES, RECV, SEND, USED_UP};
use crate::goal::builder::ScheduleBuilder;
use crate::goal::defect::BuildError;
use crate::goal::finding::{Finding, Findings, Problem, Severity};
use crate::goal::schedule::Schedule;
use crate::loggops::{Kind, Shape};

/// Reads a schedule from LogGOPSim's binary form.
///
/// # Errors
/// [`BinaryError`] where the bytes are not a schedule, or are one that is unfit to run, or when reading fails.
pub fn read_binary(input: impl Read) -> Result<Schedule, BinaryError> {
    Ok(Reader::begin(input, None)?.read()?.finish()?)
}

/// As [`read_binary`], but continues where an operation is unfit and adds that to `notes`. The second value is whether
/// the schedule is fit to run.
pub(in crate::goal) fn read_to_check(
    input: impl Read,
    notes: &mut Findings,
) -> Result<(Schedule, bool), BinaryError> {
    let builder = Reader::begin(input, Some(notes))?.read()?;
    let sound = !builder.is_broken();
    Ok((builder.finish_anyhow()?, sound))
}

/// The dependents that an operation names: their number, and the index of the first.
#[derive(Clone, Copy)]
struct Dependents {
    count: u32,
    first: u32,
}

/// Data of one rank that is needed to resolve its dependencies. Reused for the next rank.
#[derive(Default)]
struct Scratch {
    roots: Vec<u32>,
    /// For each operation the number of needs that the file claims, less those found so far.
    needs: Vec<u32>,
    dependents: Vec<[Dependents; 2]>,
    appendix: Vec<u32>,
}

struct Reader<'n, R> {
    input: Input<R>,
    builder: ScheduleBuilder,
    ranks: u32,
    top_cpu: u8,
    top_nic: u8,
    scratch: Scratch,
    /// Where to note what is unfit; `None` to fail at the first defect.
    notes: Option<&'n mut Findings>,
}

impl<'n, R: Read> Reader<'n, R> {
    fn begin(input: R, notes: Option<&'n mut Findings>) -> Result<Self, BinaryError> {
        let mut input = Input::new(input);
        match input.array(Part::Head).map(u64::from_le_bytes)? {
            MAGIC => (),
            USED_UP => return Err(BinaryError::UsedUp),
            other => return Err(BinaryError::Magic(other)),
        }
        let ranks = input.u32(Part::Head)?;
        let [top_cpu, top_nic] = input.array(Part::Head)?;
        if ranks == 0 {
            return Err(damaged(Part::Head, Damage::NoRanks));
        }
        let builder = ScheduleBuilder::new(ranks);
        Ok(Self { input, builder, ranks, top_cpu, top_nic, scratch: Scratch::default(), notes })
    }

    fn read(mut self) -> Result<ScheduleBuilder, BinaryError> {
        for (rank, [begin, end]) in (0u32..).zip(self.table()?) {
            let here = self.input.taken - MAGIC_BYTES;
            self.input.skip(begin - here, Part::Rank(rank))?;
            self.rank(rank, end - begin)?;
            let read = self.input.taken - MAGIC_BYTES - begin;
            self.input.skip(end - begin - read, Part::Rank(rank))?;
        }
        Ok(self.builder)
    }

    /// Where each rank's part begins and ends, which must be in order. The table grows only as it is read.
    fn table(&mut self) -> Result<Vec<[u64; 2]>, BinaryError> {
        let mut before = HEAD_BYTES + RANGE_BYTES * u64::from(self.ranks);
        let mut table = Vec::new();
        for rank in 0..self.ranks {
            let bytes: [u8; RANGE_BYTES as usize] = self.input.array(Part::Table)?;
            let (begin, end) = (u64_at(&bytes, 0), u64_at(&bytes, 8));
            if begin < before || end < begin {
                return Err(damaged(Part::Rank(rank), Damage::Range { begin, end, before }));
            }
            table.push([begin, end]);
            before = end;
        }
        Ok(table)
    }

    /// Reads a rank whose part is `bytes` long.
    fn rank(&mut self, rank: u32, bytes: u64) -> Result<(), BinaryError> {
        let part = Part::Rank(rank);
        if bytes < 8 {
            return Err(damaged(part, Damage::TooSmall { ops: 0, roots: 0, bytes }));
        }
        let (ops, roots) = (self.input.u32(part)?, self.input.u32(part)?);
        // Neither can overflow: both counts have 32 bits.
        let needed = 8 + 4 * u64::from(roots) + OP_BYTES as u64 * u64::from(ops);
        if bytes < needed {
            return Err(damaged(part, Damage::TooSmall { ops, roots, bytes }));
        }
        self.scratch.roots.clear();
        self.input.u32s(u64::from(roots), &mut self.scratch.roots, part)?;
        self.builder.begin_rank();
        self.ops(rank, ops)?;
        self.roots(part)?;
        self.dependencies(rank, (bytes - needed) / 4)?;
        self.builder.end_rank();
        self.look_for_defects(rank)
    }

    fn ops(&mut self, rank: u32, ops: u32) -> Result<(), BinaryError> {
        self.scratch.needs.clear();
        self.scratch.dependents.clear();
        let mut number = 0;
        while number < ops {
            let records =
                self.input.records(OP_BYTES, (ops - number) as usize, Part::Op { rank, op: number })?;
            let (records, _) = records.as_chunks::<OP_BYTES>();
            for record in records {
                let (shape, peer) =
                    operation(record).map_err(|damage| damaged(Part::Op { rank, op: number }, damage))?;
                if shape.cpu > self.top_cpu || shape.nic > self.top_nic {
                    let damage = Damage::AboveHighest { cpu: shape.cpu, nic: shape.nic };
                    return Err(damaged(Part::Op { rank, op: number }, damage));
                }
                self.builder.op(shape, peer);
                self.scratch.needs.push(u32_at(record, 0));
                let [count, first, start_count, start_first] = [23, 27, 31, 35].map(|at| u32_at(record, at));
                self.scratch.dependents.push([
                    Dependents { count, first },
                    Dependents { count: start_count, first: start_first },
                ]);
                number += 1;
            }
            self.look_for_defects(rank)?;
        }
        Ok(())
    }

    /// The list of roots must be that of the operations that need nothing, in order.
    fn roots(&self, part: Part) -> Result<(), BinaryError> {
        let needs = self.scratch.needs.iter().enumerate();
        let free = needs.filter(|(_, need)| **need == 0).map(|(op, _)| op as u32);
        if free.eq(self.scratch.roots.iter().copied()) { Ok(()) } else { Err(damaged(part, Damage::Roots)) }
    }

    /// Reads the dependents and adds the dependencies to the builder.
    fn dependencies(&mut self, rank: u32, there: u64) -> Result<(), BinaryError> {
        let scratch = &mut self.scratch;
        let counts = scratch.dependents.iter().flatten().map(|dependents| u64::from(dependents.count));
        let named = counts.fold(0, u64::saturating_add);
        // A file could name the same dependents over and over, and fill all memory.
        if named > there {
            return Err(damaged(Part::Rank(rank), Damage::Dependents { named, there }));
        }
        scratch.appendix.clear();
        self.input.u32s(there, &mut scratch.appendix, Part::Rank(rank))?;
        for (on, lists) in (0u32..).zip(&scratch.dependents) {
            let mut found = [&[][..]; 2];
            for (list, &Dependents { count, first }) in found.iter_mut().zip(lists) {
                let range = first as usize..first as usize + count as usize;
                let Some(all) = scratch.appendix.get(range) else {
                    let damage = Damage::DependentsOutside { count, first, there };
                    return Err(damaged(Part::Op { rank, op: on }, damage));
                };
                *list = all;
                for &dependent in all {
                    if let Some(needs) = scratch.needs.get_mut(dependent as usize) {
                        *needs = needs.wrapping_sub(1);
                    }
                }
            }
            self.builder.dependents(on, found[0], found[1]);
        }
        self.look_for_defects(rank)?;
        self.needs_are_met(rank)
    }

    /// Checks that each operation is named as often as it claims to need others.
    fn needs_are_met(&self, rank: u32) -> Result<(), BinaryError> {
        let Some(op) = self.scratch.needs.iter().position(|&left| left != 0) else { return Ok(()) };
        let lists = self.scratch.dependents.iter().flatten();
        let all = lists.flat_map(|list| &self.scratch.appendix[list.first as usize..][..list.count as usize]);
        let (op, named) = (op as u32, all.filter(|&&dependent| dependent == op as u32).count() as u32);
        let printed = self.scratch.needs[op as usize].wrapping_add(named);
        Err(damaged(Part::Op { rank, op }, Damage::Needs { printed, named }))
    }

    /// Fails with the first defect that the builder has found, or notes all of them.
    fn look_for_defects(&mut self, rank: u32) -> Result<(), BinaryError> {
        while let Some(error) = self.builder.take_defect() {
            match (&mut self.notes, error) {
                (Some(notes), BuildError::Op { op, defect, .. }) => {
                    notes.push(Finding::at_op(Severity::Error, rank, op, Problem::Defect(defect)));
                }
                (_, error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// What a record does, and its peer.
fn operation(record: &[u8; OP_BYTES]) -> Result<(Shape, u32), Damage> {
    let kind = match record[4] {
        SEND => Kind::Send,
        RECV => Kind::Recv,
        CALC => Kind::Calc,
        other => return Err(Damage::Type(other)),
    };
    let (cpu, nic) = (record[21], record[22]);
    Ok((Shape { kind, cpu, nic, tag: u32_at(record, 17), size: u64_at(record, 9) }, u32_at(record, 5)))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |four| u32::from_le_bytes(*four))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight))
}

fn damaged(part: Part, damage: Damage) -> BinaryError {
    BinaryError::Damaged { part, damage }
}
