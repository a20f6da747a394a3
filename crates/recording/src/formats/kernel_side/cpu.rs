//! Converts the events of one CPU to intervals.

use std::collections::HashSet;

use super::{Key, What};
use crate::{Detour, HistogramKind, Interval, Nanos, Quantum, Source, SourceKind, SourceLevel};

/// Maximum depth of nested interrupts: they nest only a few deep, and a trace with more begins than ends must not grow a list of them.
const DEEPEST: usize = 32;

/// An interval that has begun and not ended.
#[derive(Debug)]
struct Open {
    key: Key,
    source: Source,
    start: u64,
    /// Time that nested intervals took.
    nested: u64,
}

/// The task that is on the CPU.
#[derive(Debug)]
struct Task {
    pid: u32,
    comm: std::sync::Arc<str>,
    start: u64,
    nested: u64,
}

fn interval(start: u64, duration: u64, net: u64, source: Source, pid: u32) -> Interval {
    Interval {
        start: Nanos::from_nanos(start),
        duration: Nanos::from_nanos(duration),
        net: Nanos::from_nanos(net),
        source,
        pid,
        victim: 0,
        detail: None,
        cause: None,
    }
}

#[derive(Debug)]
pub(super) struct OneCpu {
    first: u64,
    pub last: u64,
    open: Vec<Open>,
    task: Option<Task>,
    pub intervals: Vec<Interval>,
    /// Intervals that the osnoise tracer reports.
    osnoise: Vec<Interval>,
    pub gaps: Vec<Detour>,
    /// Start, length and noise of each period.
    pub periods: Vec<(u64, u64, u64)>,
    pub late: Vec<(HistogramKind, u64)>,
    /// Number of intervals without their beginning or their end.
    pub cut: u64,
}

impl OneCpu {
    pub fn new(now: u64) -> Self {
        Self {
            first: now,
            last: now,
            open: Vec::new(),
            task: None,
            intervals: Vec::new(),
            osnoise: Vec::new(),
            gaps: Vec::new(),
            periods: Vec::new(),
            late: Vec::new(),
            cut: 0,
        }
    }

    /// The earliest time that its events cover.
    pub fn first(&self) -> u64 {
        self.first
    }

    pub fn push(&mut self, now: u64, what: What) -> Result<(), String> {
        if now < self.last {
            return Err(format!(
                "the time goes back by {} ns on its CPU: the events have to be in order",
                self.last - now
            ));
        }
        self.last = now;
        match what {
            What::Enter(key, source) => {
                if self.open.len() == DEEPEST {
                    self.open.remove(0);
                    self.cut += 1;
                }
                self.open.push(Open { key, source, start: now, nested: 0 });
            }
            What::Exit(key) => self.exit(now, key),
            What::Switch { pid, comm } => self.switch(now, pid, comm),
            What::Ended { source, pid, start, net } => self.ended(now, source, pid, start, net)?,
            What::Took { source, ns } => {
                let start = now.checked_sub(ns).ok_or("it took longer than there is time before it")?;
                self.first = self.first.min(start);
                self.put(start, ns, ns, source, 0);
                self.nest(ns);
            }
            What::Gap { start, duration } => {
                self.begins(now, start)?;
                let (start, duration) = (Nanos::from_nanos(start), Nanos::from_nanos(duration));
                start.checked_add(duration).ok_or("a gap ends beyond all time")?;
                self.gaps.push(Detour { start, duration, own: false });
            }
            What::Period { watched, noise } => {
                let start =
                    now.checked_sub(watched).ok_or("the period is longer than there is time before it")?;
                if noise > watched {
                    return Err("the period has more noise than time".into());
                }
                self.first = self.first.min(start);
                self.periods.push((start, watched, noise));
            }
            What::Late { kind, ns } => self.late.push((kind, ns)),
            What::Other => {}
        }
        Ok(())
    }

    fn begins(&mut self, now: u64, start: u64) -> Result<(), String> {
        if start > now.saturating_add(1_000_000) {
            return Err("it began after it was reported".into());
        }
        self.first = self.first.min(start);
        Ok(())
    }

    fn put(&mut self, start: u64, duration: u64, net: u64, source: Source, pid: u32) {
        self.intervals.push(interval(start, duration, net, source, pid));
    }

    /// Adds nested time to the surrounding interval.
    fn nest(&mut self, ns: u64) {
        if let Some(outer) = self.open.last_mut() {
            outer.nested = outer.nested.saturating_add(ns);
        } else if let Some(task) = &mut self.task {
            task.nested = task.nested.saturating_add(ns);
        }
    }

    /// What is open may have ended among the lost events.
    pub fn lose(&mut self) {
        self.cut += self.open.len() as u64 + u64::from(self.task.as_ref().is_some_and(|task| task.pid != 0));
        self.open.clear();
        self.task = None;
    }

    fn exit(&mut self, now: u64, key: Key) {
        let Some(at) = self.open.iter().rposition(|open| open.key == key) else {
            self.cut += 1;
            return;
        };
        // The intervals that began within it and have not ended lost their end.
        self.cut += (self.open.len() - at - 1) as u64;
        self.open.truncate(at + 1);
        if let Some(Open { source, start, nested, .. }) = self.open.pop() {
            let duration = now - start;
            self.put(start, duration, duration.saturating_sub(nested), source, 0);
            self.nest(duration);
        }
    }

    fn switch(&mut self, now: u64, pid: u32, comm: std::sync::Arc<str>) {
        // No interrupt lasts across a task switch.
        self.cut += self.open.len() as u64;
        self.open.clear();
        let gone = self.task.replace(Task { pid, comm, start: now, nested: 0 });
        if let Some(Task { pid, comm, start, nested }) = gone.filter(|task| task.pid != 0) {
            let duration = now - start;
            self.put(start, duration, duration.saturating_sub(nested), Source::Task(comm), pid);
        }
    }

    /// Adds an interval that ended. Text has whole us although the start is in ns, so the duration is at least the net time.
    fn ended(&mut self, now: u64, source: Source, pid: u32, start: u64, net: u64) -> Result<(), String> {
        self.begins(now, start)?;
        let duration = net.max(now.saturating_sub(start));
        start.checked_add(duration).ok_or("an interval ends beyond all time")?;
        self.osnoise.push(interval(start, duration, net, source, pid));
        Ok(())
    }

    /// Drops the intervals of other events that the osnoise tracer reports too, and those of its own thread.
    pub fn prefer_osnoise(&mut self) {
        let Some(first) = self.osnoise.iter().map(|one| one.start).min() else { return };
        let Some(last) = self.osnoise.iter().map(Interval::end).max() else { return };
        let level = |one: &Interval| one.source.kind().level();
        let levels: HashSet<SourceLevel> = self.osnoise.iter().map(level).collect();
        let again = |raw: &Interval| (first..=last).contains(&raw.start) && levels.contains(&level(raw));
        let tracer = |raw: &Interval| {
            let name = raw.source.name().filter(|_| raw.source.kind() == SourceKind::Task);
            name.is_some_and(|name| name.starts_with("osnoise/") || name.starts_with("timerlat"))
        };
        self.intervals.retain(|raw| !again(raw) && !tracer(raw));
        self.intervals.append(&mut self.osnoise);
    }

    pub fn take_intervals(&mut self, zero: u64) -> Vec<Interval> {
        let mut all = std::mem::take(&mut self.intervals);
        for one in &mut all {
            one.start = Nanos::from_nanos(one.start.as_nanos() - zero);
        }
        all.sort_by_key(|one| (one.start, std::cmp::Reverse(one.duration)));
        all
    }

    /// The gaps in order; a gap that begins within the previous one begins at its end.
    pub fn take_gaps(&mut self, zero: u64) -> Vec<Detour> {
        let mut all = std::mem::take(&mut self.gaps);
        all.sort_by_key(|gap| gap.start);
        let mut free = Nanos::ZERO;
        for gap in &mut all {
            let end = Nanos::from_nanos(gap.end().as_nanos() - zero);
            gap.start = Nanos::from_nanos(gap.start.as_nanos() - zero).max(free);
            gap.duration = end - gap.start;
            free = end.max(free);
        }
        all.retain(|gap| gap.duration > Nanos::ZERO);
        all
    }

    pub fn quanta(&self, zero: u64) -> Vec<Quantum> {
        let quantum = |&(start, watched, noise): &(u64, u64, u64)| Quantum {
            start: Nanos::from_nanos(start - zero),
            duration: Nanos::from_nanos(watched),
            work: watched - noise,
        };
        let mut all: Vec<Quantum> = self.periods.iter().map(quantum).collect();
        all.sort_by_key(|quantum| quantum.start);
        all
    }
}
