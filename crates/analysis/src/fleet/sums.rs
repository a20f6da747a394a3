//! Sums of one source on one node, in a few machine words.

use quell_recording::{Nanos, Span};

/// Maximum number of windows that a node's span is cut into, each of at least a second: a source that runs once for a while is in one
/// or two of them, one that keeps returning is in many.
const MOST_WINDOWS: u64 = 64;
const SHORTEST_WINDOW: u64 = 1_000_000_000;

/// The windows of a span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    start: Nanos,
    length: u64,
    /// Number of windows, at least one.
    pub count: u32,
}

impl Windows {
    pub fn from_span(span: Span) -> Self {
        let whole = span.length().as_nanos();
        let count = (whole / SHORTEST_WINDOW).clamp(1, MOST_WINDOWS);
        Self { start: span.start, length: (whole / count).max(1), count: count as u32 }
    }

    fn bit(self, at: Nanos) -> u64 {
        let place = (at.saturating_sub(self.start).as_nanos() / self.length).min(u64::from(self.count) - 1);
        1 << place
    }
}

/// One event of a source with its weight: a detour of a length between two bands counts in part in both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub at: Nanos,
    pub ns: u64,
    /// Weight, at most 1.
    pub weight: f64,
}

/// Sums of one CPU.
#[derive(Clone, Copy, Debug, Default)]
struct OfCpu {
    count: f64,
    total_ns: f64,
    /// The two longest times. Without them the sum does not depend on any single event.
    longest: [f64; 2],
}

impl OfCpu {
    fn add(&mut self, event: Event) {
        let ns = event.weight * event.ns as f64;
        self.count += event.weight;
        self.total_ns += ns;
        self.longest = with(self.longest, ns);
    }

    fn settled_ns(&self) -> f64 {
        (self.total_ns - self.longest[0] - self.longest[1]).max(0.0)
    }
}

fn with([first, second]: [f64; 2], ns: f64) -> [f64; 2] {
    if ns > first { [ns, first] } else { [first, second.max(ns)] }
}

/// The sums of one source while a node's rows are read.
#[derive(Clone, Debug)]
pub(super) struct Gathered {
    cpus: Vec<OfCpu>,
    windows: u64,
    max_ns: u64,
}

impl Gathered {
    pub fn new(cpus: usize) -> Self {
        Self { cpus: vec![OfCpu::default(); cpus], windows: 0, max_ns: 0 }
    }

    /// Counts an event on the CPU with this index.
    pub fn add(&mut self, cpu: usize, event: Event, windows: Windows) {
        self.cpus[cpu].add(event);
        if event.weight >= 0.5 {
            self.windows |= windows.bit(event.at);
            self.max_ns = self.max_ns.max(event.ns);
        }
    }

    /// The sums; `watched_s` are the seconds for which each CPU was observed.
    pub fn sums(&self, watched_s: &[f64]) -> Sums {
        let mut all = OfCpu::default();
        let mut sums = Sums { active: self.windows.count_ones(), max_ns: self.max_ns, ..Sums::default() };
        for (cpu, watched) in self.cpus.iter().zip(watched_s) {
            all.count += cpu.count;
            all.total_ns += cpu.total_ns;
            all.longest = cpu.longest.iter().fold(all.longest, |longest, &ns| with(longest, ns));
            if *watched > 0.0 {
                sums.worst_rate = sums.worst_rate.max(cpu.count / watched);
                sums.worst_share = sums.worst_share.max(cpu.settled_ns() / watched);
            }
        }
        Sums { count: all.count, total_ns: all.total_ns, settled_ns: all.settled_ns(), ..sums }
    }
}

/// The sums of one source on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    /// Number of events, over all CPUs.
    pub count: f64,
    /// Sum of their times.
    pub total_ns: f64,
    /// Sum of their times without the two longest.
    pub settled_ns: f64,
    /// The longest time.
    pub max_ns: u64,
    /// Events per second on the CPU with most.
    pub worst_rate: f64,
    /// Time in ns per second, without its two longest events, on the CPU that lost most.
    pub worst_share: f64,
    /// Number of windows in which it was seen.
    pub active: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(seconds: u64) -> Span {
        Span { start: Nanos::from_nanos(500), end: Nanos::from_nanos(500 + seconds * 1_000_000_000) }
    }

    #[test]
    fn a_burst_is_in_one_window_and_what_comes_back_in_many() {
        let windows = Windows::from_span(span(10));
        assert_eq!(windows.count, 10);
        assert_eq!((Windows::from_span(span(600)).count, Windows::from_span(span(0)).count), (64, 1));
        let (mut burst, mut daemon) = (Gathered::new(1), Gathered::new(1));
        for i in 0..30 {
            let event = |at| Event { at: Nanos::from_nanos(at), ns: 10, weight: 1.0 };
            burst.add(0, event(3_000_000_000 + i), windows);
            daemon.add(0, event(i * 400_000_000), windows);
        }
        assert_eq!((burst.sums(&[10.0]).active, daemon.sums(&[10.0]).active), (1, 10));
    }

    #[test]
    fn the_two_longest_do_not_settle_anything() {
        let mut one = Gathered::new(2);
        for (cpu, ns) in [(0, 5), (0, 1_000), (1, 7), (1, 900), (1, 11)] {
            one.add(cpu, Event { at: Nanos::ZERO, ns, weight: 1.0 }, Windows::from_span(span(2)));
        }
        let sums = one.sums(&[2.0, 2.0]);
        assert_eq!((sums.count, sums.total_ns, sums.settled_ns, sums.max_ns), (5.0, 1_923.0, 23.0, 1_000));
        assert_eq!((sums.worst_rate, sums.worst_share), (1.5, 3.5));
    }
}
