//! Work that overflows a 64-bit clock.

use super::super::finding::{Finding, Findings, Problem, Severity};
use crate::goal::schedule::Schedule;
use crate::loggops::{Kind, Program};

const LIMIT: u128 = u64::MAX as u128;

pub(super) fn look(schedule: &Schedule, findings: &mut Findings) {
    let mut all = 0u128;
    let mut of_cpu = vec![0u128; schedule.cpus as usize];
    for rank in 0..schedule.ranks() {
        of_cpu.fill(0);
        for op in schedule.rank_list(rank) {
            let shape = schedule.shapes[op.shape as usize];
            if shape.kind == Kind::Calc {
                of_cpu[usize::from(shape.cpu)] += u128::from(shape.size);
            }
        }
        for (cpu, &total_ns) in (0..=u8::MAX).zip(&of_cpu) {
            if total_ns > LIMIT {
                let problem = Problem::WorkOverflows { cpu, total_ns };
                findings.push(Finding::at_rank(Severity::Error, rank, problem));
            }
            all += total_ns;
        }
    }
    if all > LIMIT {
        findings.push(Finding::on_all(Severity::Warning, Problem::WorkMayOverflow { total_ns: all }));
    }
}
