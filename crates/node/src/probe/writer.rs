//! The writer's loop: empties the buffers, converts the clock's ticks to CLOCK_MONOTONIC, and hands rows to the sink.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quell_recording::{Cpu, Detour, Error, Method, Nanos, Progress, Quantum, Span};

use super::own::OwnWork;
use super::ring::Row;
use super::sink::sleep_for;
use super::stops::Stops;
use super::thread::{Probe, Run};
use super::{Sink, Status};
use crate::clock::{Anchor, Scale};
use crate::realtime;

/// A batch is written once it has this many rows, which stay in the core's cache until then.
const BATCH_ROWS: usize = 1 << 10;
/// Time to the first emptying of the buffers; later ones depend on the rate of rows.
const FIRST_LOOK: Duration = Duration::from_millis(50);
/// Longest sleep of a writer on a CPU of its own, and of one that shares a probed CPU.
const LONGEST_SLEEP_ALONE: Duration = Duration::from_millis(300);
const LONGEST_SLEEP_SHARED: Duration = Duration::from_millis(700);
const SHORTEST_SLEEP: Duration = Duration::from_millis(2);
/// A probe that is overdue by this much loses its real-time priority.
const WATCHDOG: Nanos = Nanos::from_nanos(500_000_000);

/// Rows on their way from the rings to the sink.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    run: &'a Run<'a>,
    probes: &'a [Probe],
    /// The probed CPU that the writer shares with a probe, if any.
    shared_cpu: Option<Cpu>,
    zero: Anchor,
    /// The current conversion line starts at `base`; `latest` is the last reading of both clocks.
    base: Anchor,
    latest: Anchor,
    line: Scale,
    own: OwnWork,
    stops: Stops,
    /// Start of the first row and end of the last, per CPU. They keep rounding from making two rows overlap, or one extend
    /// beyond its CPU's span.
    reach: Vec<Span>,
    /// For each probe, the last time at which it was known to be on its CPU, in ticks, and whether it still is.
    there: Vec<(u64, bool)>,
    detours: Vec<(Cpu, Detour)>,
    quanta: Vec<(Cpu, Quantum)>,
    found: u64,
    written: u64,
    lost_elsewhere: u64,
    flushed: Nanos,
}

impl<'a> Stream<'a> {
    pub fn new(run: &'a Run, probes: &'a [Probe], zero: Anchor, shared_cpu: Option<Cpu>) -> Self {
        Self {
            run,
            probes,
            shared_cpu,
            zero,
            base: zero,
            latest: zero,
            line: run.rate,
            own: OwnWork::default(),
            stops: Stops::new(),
            reach: vec![Span { start: Nanos::MAX, end: Nanos::ZERO }; probes.len()],
            there: vec![(zero.ticks, true); probes.len()],
            detours: Vec::with_capacity(BATCH_ROWS),
            quanta: Vec::new(),
            found: 0,
            written: 0,
            lost_elsewhere: 0,
            flushed: Nanos::ZERO,
        }
    }

    /// Runs until every probe is done. Sets `run.halt` when `stop` is set, enough rows were found, or a write fails.
    pub fn run(&mut self, sink: &mut dyn Sink, stop: &AtomicBool) -> Result<(), Error> {
        let drain_interval = sink.drain_interval();
        let mut sleep = FIRST_LOOK.min(drain_interval);
        loop {
            sink.sleep_for(sleep.min(self.until_deadline()));
            self.own.begin(self.run.kind.now());
            let done = self.probes.iter().all(|probe| probe.done.load(Ordering::SeqCst));
            let fill = self.collect(sink).inspect_err(|_| self.halt())?;
            let fill = fill.max(sink.look().inspect_err(|_| self.halt())?);
            if stop.load(Ordering::SeqCst) || self.run.plan.count.is_some_and(|count| self.found >= count) {
                self.halt();
            }
            self.watch();
            if done || self.elapsed() >= sink.next_flush(self.flushed) {
                self.lost_elsewhere = sink.lost();
                self.flush(sink).inspect_err(|_| self.halt())?;
                sink.status(self.status());
            }
            self.own.end(self.run.kind.now());
            if done {
                return Ok(());
            }
            sleep = self.next_sleep(sleep, fill, sink.next_flush(self.flushed)).min(drain_interval);
        }
    }

    /// Waits for the probes after a failed write; rows that they still find are dropped.
    pub fn wait_for_probes(&self) {
        while !self.probes.iter().all(|probe| probe.done.load(Ordering::SeqCst)) {
            sleep_for(SHORTEST_SLEEP);
            self.watch();
        }
    }

    /// The conversion from ticks to ns over the whole run.
    pub fn scale(&self) -> Scale {
        Scale::between(self.zero, self.latest)
    }

    pub fn status(&self) -> Status {
        let lost: u64 = self.probes.iter().map(|probe| probe.ring.lost()).sum();
        Status { elapsed: self.elapsed(), rows: self.found, lost: lost + self.lost_elsewhere }
    }

    /// Number of rows for which a probe's ring had no room.
    pub fn lost(&self, index: usize) -> u64 {
        self.probes[index].ring.lost()
    }

    /// Number of times that the process was stopped.
    pub fn stops(&self) -> u64 {
        self.stops.count() as u64
    }

    /// Number of rows that the sink has taken.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The span of a probe whose first and last readings are `first` and `last`.
    pub fn span(&self, index: usize, first: u64, last: u64) -> Span {
        let start = self.scale().monotonic(first).saturating_sub(self.zero.monotonic_ns);
        let reach = self.reach[index];
        let start = reach.start.min(Nanos::from_nanos(start));
        Span { start, end: reach.end.max(self.time(last)).max(start) }
    }

    /// Whether the probe was on its CPU at this reading of the clock.
    fn is_of_its_cpu(&self, index: usize, ticks: u64) -> bool {
        let (known, there) = self.there[index];
        there || ticks <= known
    }

    /// The last reading at which a probe was on its CPU, if its thread saw at the end that it was `moved` or the writer did before.
    pub fn end_on_its_cpu(&self, index: usize, moved: bool) -> Option<u64> {
        let (known, there) = self.there[index];
        (moved || !there).then_some(known)
    }

    /// A recent reading of the clock as a time of the recording.
    fn time(&self, ticks: u64) -> Nanos {
        Nanos::from_nanos(self.line.monotonic(ticks).saturating_sub(self.zero.monotonic_ns))
    }

    fn halt(&self) {
        self.run.halt.store(true, Ordering::SeqCst);
        self.probes.iter().for_each(|probe| probe.stop.store(true, Ordering::SeqCst));
    }

    /// Ends a probe that was moved to another CPU. Its rows since it was last known to be on its own may be of the other one.
    fn look_for_moved(&mut self, index: usize, sink: &mut dyn Sink) {
        let probe = &self.probes[index];
        let (known, there) = &mut self.there[index];
        if !*there || probe.done.load(Ordering::SeqCst) {
            return;
        }
        let now = self.run.kind.now();
        *there = probe.is_on_its_cpu();
        if *there {
            *known = now;
        } else {
            probe.stop.store(true, Ordering::SeqCst);
            let known = *known;
            sink.closed(probe.cpu, self.time(known));
        }
    }

    fn elapsed(&self) -> Nanos {
        Nanos::from_nanos(self.latest.monotonic_ns - self.zero.monotonic_ns)
    }

    fn until_deadline(&self) -> Duration {
        let left = self.run.deadline_ticks.load(Ordering::SeqCst).saturating_sub(self.run.kind.now());
        Duration::from(self.run.rate.length(left)) + SHORTEST_SLEEP
    }

    /// Empties the rings and returns how full the fullest was.
    fn collect(&mut self, sink: &mut dyn Sink) -> Result<f64, Error> {
        self.latest = Anchor::take(self.run.kind);
        self.line = Scale::between(self.base, self.latest);
        let mut fill: f64 = 0.0;
        for index in 0..self.probes.len() {
            self.look_for_moved(index, sink);
            let ring = &self.probes[index].ring;
            let mut drained = 0;
            // A probe may fill its ring as fast as it is emptied, and the other tasks of this thread must not wait for that.
            while drained < ring.capacity() {
                let room = BATCH_ROWS - self.detours.len() - self.quanta.len();
                let rows = ring.drain(room as u64, |row| self.take(index, row));
                drained += rows;
                if rows < room as u64 {
                    break;
                }
                self.write(sink)?;
                // A write may have taken long.
                self.look_for_moved(index, sink);
            }
            self.found += drained;
            fill = fill.max(drained as f64 / ring.capacity() as f64);
        }
        self.own.forget_before(self.latest.ticks);
        Ok(fill)
    }

    fn take(&mut self, index: usize, row: Row) {
        let probe = &self.probes[index];
        if !self.is_of_its_cpu(index, row.start + row.ticks) {
            return;
        }
        let start = self.time(row.start).max(self.reach[index].end);
        self.reach[index].start = self.reach[index].start.min(start);
        if self.run.plan.method == Method::Detour {
            let gap = row.ticks.saturating_sub(probe.turn_ticks.load(Ordering::Relaxed)).max(1);
            let own = self.is_own(probe.cpu, row);
            let detour = Detour { start, duration: self.run.rate.length(gap), own };
            self.reach[index].end = detour.end();
            self.detours.push((probe.cpu, detour));
        } else if self.run.plan.method != Method::Memory || !self.is_own(probe.cpu, row) {
            let duration = self.time(row.start.saturating_add(row.ticks)) - start;
            self.reach[index].end = start + duration;
            self.quanta.push((probe.cpu, Quantum { start, duration, work: row.work }));
        }
    }

    /// Whether quell itself, or a stop of it, took the CPU.
    fn is_own(&self, cpu: Cpu, row: Row) -> bool {
        let at_work = self.shared_cpu == Some(cpu) && self.own.touches(row.start, row.start + row.ticks);
        at_work || self.is_stop(row)
    }

    fn is_stop(&self, row: Row) -> bool {
        self.stops.count() > 0
            && self.stops.explain(self.line.monotonic(row.start), self.line.monotonic(row.start + row.ticks))
    }

    fn write(&mut self, sink: &mut dyn Sink) -> Result<(), Error> {
        sink.detours(&self.detours)?;
        sink.quanta(&self.quanta)?;
        self.written += (self.detours.len() + self.quanta.len()) as u64;
        self.detours.clear();
        self.quanta.clear();
        Ok(())
    }

    fn flush(&mut self, sink: &mut dyn Sink) -> Result<(), Error> {
        self.write(sink)?;
        self.flushed = self.elapsed();
        let lost = self.probes.iter().map(|probe| probe.ring.lost()).collect();
        sink.progress(&Progress { until_ns: self.flushed, lost, intervals_lost: self.lost_elsewhere })?;
        // A new line starts here, so that a long run follows NTP's adjustments of CLOCK_MONOTONIC.
        self.base = self.latest;
        Ok(())
    }

    /// Takes real-time priority from a probe that does not end in time.
    fn watch(&self) {
        if self.run.plan.realtime.is_none() {
            return;
        }
        let deadline = self.run.deadline_ticks.load(Ordering::SeqCst);
        if self.run.kind.now().saturating_sub(deadline) > self.run.rate.ticks(WATCHDOG) {
            self.halt();
            for probe in self.probes.iter().filter(|probe| !probe.done.load(Ordering::SeqCst)) {
                realtime::demote(probe.thread.load(Ordering::SeqCst));
            }
        }
    }

    /// Sleeps until the fullest ring should be a quarter full, unless another limit is shorter.
    fn next_sleep(&self, last: Duration, fill: f64, next_flush: Nanos) -> Duration {
        let longest = if self.shared_cpu.is_some() { LONGEST_SLEEP_SHARED } else { LONGEST_SLEEP_ALONE };
        let by_rate = Duration::try_from_secs_f64(last.as_secs_f64() * 0.25 / fill).unwrap_or(longest);
        let to_flush = Duration::from(next_flush - self.elapsed());
        by_rate.min(longest).min(to_flush).max(SHORTEST_SLEEP)
    }
}
