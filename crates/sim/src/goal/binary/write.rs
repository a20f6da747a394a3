//! From a schedule to the binary form, byte for byte as `txt2bin` writes it.

use std::io::{self, Write};

use super::{CALC, HEAD_BYTES, MAGIC, OP_BYTES, RANGE_BYTES, RECV, SEND};
use crate::goal::rank_part::{DEPENDENT, RankPart};
use crate::goal::schedule::Schedule;
use crate::loggops::{Kind, Program, Shape};

/// Writes a schedule in the binary form that LogGOPSim runs. Writes are medium-sized, so `out` needs no buffer.
///
/// # Errors
/// Those of `out`.
pub fn write_binary(schedule: &Schedule, out: &mut dyn Write) -> io::Result<()> {
    write_head(schedule, out)?;
    let mut bytes = Vec::new();
    for rank in 0..schedule.ranks() {
        write_rank(schedule, &schedule.part(rank), &mut bytes);
        // Collects small ranks into one write; a large one is written at once.
        if bytes.len() > 1 << 16 {
            out.write_all(&bytes)?;
            bytes.clear();
        }
    }
    out.write_all(&bytes)
}

fn write_head(schedule: &Schedule, out: &mut dyn Write) -> io::Result<()> {
    let ranks = schedule.ranks();
    let mut bytes = Vec::new();
    bytes.extend(MAGIC.to_le_bytes());
    bytes.extend(ranks.to_le_bytes());
    // A schedule has at most 256 of either.
    bytes.extend([schedule.cpus() - 1, schedule.nics() - 1].map(|top| top as u8));
    let mut at = HEAD_BYTES + RANGE_BYTES * u64::from(ranks);
    for rank in 0..ranks {
        let part = schedule.part(rank);
        let roots = part.needs().iter().filter(|need| **need == 0).count();
        bytes.extend(at.to_le_bytes());
        at += 8 + 4 * (roots + part.edges.len()) as u64 + (OP_BYTES * part.ops.len()) as u64;
        bytes.extend(at.to_le_bytes());
    }
    out.write_all(&bytes)
}

fn write_rank(schedule: &Schedule, part: &RankPart<'_>, bytes: &mut Vec<u8>) {
    let needs = part.needs();
    let roots = || needs.iter().enumerate().filter(|(_, need)| **need == 0).map(|(op, _)| op as u32);
    bytes.extend((part.ops.len() as u32).to_le_bytes());
    bytes.extend((roots().count() as u32).to_le_bytes());
    bytes.extend(roots().flat_map(u32::to_le_bytes));
    for (number, (op, need)) in part.ops.iter().zip(&needs).enumerate() {
        let shape = schedule.shapes[op.shape as usize];
        let (at_end, at_start) = part.edges_by_kind(number);
        let (count, start_count) = (at_end.len() as u32, at_start.len() as u32);
        let first = op.edges_end - start_count - count;
        write_operation(shape, op.peer, *need, bytes);
        let lists = [count, first, start_count, first + count];
        bytes.extend(lists.iter().flat_map(|number| number.to_le_bytes()));
    }
    bytes.extend(part.edges.iter().flat_map(|edge| (edge & DEPENDENT).to_le_bytes()));
}

/// Writes a record except for its dependents.
fn write_operation(shape: Shape, peer: u32, needs: u32, bytes: &mut Vec<u8>) {
    let kind = match shape.kind {
        Kind::Send => SEND,
        Kind::Recv => RECV,
        Kind::Calc => CALC,
    };
    bytes.extend(needs.to_le_bytes());
    bytes.push(kind);
    bytes.extend(peer.to_le_bytes());
    bytes.extend(shape.size.to_le_bytes());
    bytes.extend(shape.tag.to_le_bytes());
    bytes.extend([shape.cpu, shape.nic]);
}
