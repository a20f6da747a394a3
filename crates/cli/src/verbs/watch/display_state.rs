//! The content of the display: the last frame, and the longest detours so far.

use std::collections::VecDeque;

use quell_analysis::live::{CpuNow, Frame, LongestDetour};
use quell_analysis::stats;

/// Maximum number of lines in the log.
const LOG: usize = 200;

/// The state of the display.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// The CPUs that are watched.
    pub title: String,
    /// The last interval; `None` before the first.
    pub frame: Option<Frame>,
    /// Detours longer than any before, the newest last.
    pub log: VecDeque<LongestDetour>,
}

impl Board {
    /// Stores a new frame.
    pub fn take(&mut self, frame: Frame) {
        self.log.extend(frame.longest.iter().cloned());
        self.log.drain(..self.log.len().saturating_sub(LOG));
        self.frame = Some(frame);
    }
}

/// A row of the table of CPUs.
#[derive(Clone, Debug)]
pub struct CpuRow {
    /// The CPU, or `all`.
    pub label: String,
    /// Its figures.
    pub figures: CpuNow,
}

impl CpuRow {
    /// The row of one CPU.
    pub fn from_cpu(cpu: &CpuNow) -> Self {
        Self { label: cpu.cpu.to_string(), figures: cpu.clone() }
    }

    /// The row of all CPUs: percentages are means, counts are sums, the longest is the maximum.
    pub fn together(cpus: &[CpuNow]) -> Self {
        let count = cpus.len().max(1) as f64;
        let sum = |of: fn(&CpuNow) -> Option<f64>| cpus.iter().map(of).sum::<Option<f64>>();
        let mean = |of: fn(&CpuNow) -> Option<f64>| sum(of).map(|sum| sum / count);
        let most = |of: fn(&CpuNow) -> Option<u64>| cpus.iter().filter_map(of).max();
        let moments = cpus.iter().map(|cpu| cpu.history.len()).max().unwrap_or(0);
        let at = |back: usize| {
            let of_cpu = |cpu: &CpuNow| cpu.history.iter().rev().nth(back).copied().unwrap_or(0.0);
            stats::mean(cpus.iter().map(of_cpu)).unwrap_or(0.0)
        };
        let figures = CpuNow {
            cpu: 0,
            noise_percent: mean(|cpu| cpu.noise_percent),
            noise_percent_since_start: mean(|cpu| cpu.noise_percent_since_start),
            detours_per_s: sum(|cpu| cpu.detours_per_s),
            max_ns: most(|cpu| cpu.max_ns),
            max_ns_since_start: most(|cpu| cpu.max_ns_since_start),
            kernel_percent: mean(|cpu| cpu.kernel_percent),
            kernel_percent_since_start: mean(|cpu| cpu.kernel_percent_since_start),
            tasks_percent: mean(|cpu| cpu.tasks_percent),
            tasks_percent_since_start: mean(|cpu| cpu.tasks_percent_since_start),
            own_detours: cpus.iter().map(|cpu| cpu.own_detours).sum(),
            own_ns: cpus.iter().map(|cpu| cpu.own_ns).sum(),
            history: (0..moments).rev().map(at).collect(),
        };
        Self { label: "all".into(), figures }
    }

    /// The noise by which rows are ranked.
    pub fn noise(&self) -> f64 {
        self.figures.noise_percent.or(self.figures.kernel_percent).unwrap_or(0.0)
    }
}
