//! A detour and what caused it.

use quell_recording::Detour;

/// One source's share of a detour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Index of the interval in its CPU's list; the first one, if several of one source and task contributed.
    pub interval: usize,
    /// Its share of the detour, in ns.
    pub ns: u64,
}

/// A detour and what caused it. Always `duration = sum of parts + stolen_ns + left_ns`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    /// The detour; never one of quell's own.
    pub detour: Detour,
    /// The share of each source, net of nesting, in order of first appearance.
    pub parts: Vec<Part>,
    /// The time that is attributed to the hypervisor: stolen in a window around this detour (see `steal`).
    pub stolen_ns: u64,
    /// The time that is not attributed.
    pub left_ns: u64,
    /// Whether it holds an interval, within the tolerance.
    pub met: bool,
    /// Whether one of its intervals is another task.
    pub met_task: bool,
}

impl Blame {
    /// The time that is attributed.
    pub fn attributed_ns(&self) -> u64 {
        self.detour.duration.as_nanos() - self.left_ns
    }
}
