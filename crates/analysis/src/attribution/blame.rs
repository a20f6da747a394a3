//! A detour, and who is to blame for it.

use quell_recording::Detour;

/// One source's share of a detour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The interval's place in its CPU's list; the first, where several of one source and task took part.
    pub interval: usize,
    /// What it took of the detour, in ns.
    pub ns: u64,
}

/// A detour, and who is to blame for it: `duration = sum of parts + stolen_ns + left_ns`, always.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    /// The detour; never one of quell's own.
    pub detour: Detour,
    /// What each source took, net of nesting, in order of first appearance.
    pub parts: Vec<Part>,
    /// What is put down to the hypervisor: time that it took in a window around this detour (see `steal`).
    pub stolen_ns: u64,
    /// What nothing explains.
    pub left_ns: u64,
    /// Whether an interval lies in it, within the tolerance.
    pub met: bool,
    /// Whether one of them is another task.
    pub met_task: bool,
}

impl Blame {
    /// The time that is explained.
    pub fn attributed_ns(&self) -> u64 {
        self.detour.duration.as_nanos() - self.left_ns
    }

    /// Explained by count: an interval lies in it, or at least half of it was stolen.
    pub fn explained(&self) -> bool {
        self.met || (self.stolen_ns > 0 && 2 * self.stolen_ns >= self.detour.duration.as_nanos())
    }
}
