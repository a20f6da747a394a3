//! Operations that wait for each other in a cycle.

use super::rank_part::{DEPENDENT, RankPart};

/// No operation: larger than every number of an operation.
const NONE: u32 = u32::MAX;

/// A cycle among the operations of a rank, if there is one: each waits for the next, the last for the first.
pub(super) fn find(part: &RankPart<'_>) -> Option<Vec<u32>> {
    let needs = what_never_starts(part)?;
    // For each operation that never starts, one of those that block it; following these must end in a cycle.
    let mut cause = vec![NONE; needs.len()];
    for op in (0..needs.len()).filter(|&op| needs[op] > 0) {
        for edge in part.edges_of(op) {
            cause[(edge & DEPENDENT) as usize] = op as u32;
        }
    }
    let mut at = needs.iter().position(|&need| need > 0)? as u32;
    for _ in 0..needs.len() {
        at = cause[at as usize];
    }
    let mut cycle = vec![at];
    let mut next = cause[at as usize];
    while next != at {
        cycle.push(next);
        next = cause[next as usize];
    }
    start_at_lowest(&mut cycle);
    Some(cycle)
}

/// What each operation still waits for once all that can run are done; `None` if that is nothing.
fn what_never_starts(part: &RankPart<'_>) -> Option<Vec<u32>> {
    let mut needs = part.needs();
    let mut free: Vec<u32> = (0..needs.len() as u32).filter(|&op| needs[op as usize] == 0).collect();
    let mut done = 0;
    while let Some(op) = free.pop() {
        done += 1;
        for edge in part.edges_of(op as usize) {
            let dependent = edge & DEPENDENT;
            needs[dependent as usize] -= 1;
            if needs[dependent as usize] == 0 {
                free.push(dependent);
            }
        }
    }
    (done < needs.len()).then_some(needs)
}

fn start_at_lowest(cycle: &mut [u32]) {
    let lowest = cycle.iter().enumerate().min_by_key(|(_, op)| **op).map_or(0, |(index, _)| index);
    cycle.rotate_left(lowest);
}
