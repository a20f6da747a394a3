//! Small recordings for the tests of this module.

use std::path::PathBuf;

use quell_recording::{
    ClockFacts, Cpu, CpuFacts, Detour, Interval, Intervals, Manifest, Method, Nanos, Recording, Source,
    SourcesFacts, Span, State, Trace,
};

pub fn detour(start: u64, duration: u64) -> Detour {
    Detour { start: Nanos::from_nanos(start), duration: Nanos::from_nanos(duration), own: false }
}

pub fn interval(source: Source, start: u64, duration: u64) -> Interval {
    let duration = Nanos::from_nanos(duration);
    let start = Nanos::from_nanos(start);
    Interval { start, duration, net: duration, source, pid: 0, victim: 0, detail: None, cause: None }
}

pub fn tick(start: u64, duration: u64) -> Interval {
    interval(Source::Tick, start, duration)
}

pub fn softirq(name: &str, start: u64, duration: u64) -> Interval {
    interval(Source::Softirq(name.into()), start, duration)
}

pub fn task(comm: &str, pid: u32, start: u64, duration: u64) -> Interval {
    Interval { pid, ..interval(Source::Task(comm.into()), start, duration) }
}

pub fn steal(start: u64, duration: u64, net: u64) -> Interval {
    Interval { net: Nanos::from_nanos(net), ..interval(Source::Steal, start, duration) }
}

pub fn trace(end: u64, detours: Vec<Detour>) -> Trace {
    Trace { cpu: Cpu(1), span: Span { start: Nanos::ZERO, end: Nanos::from_nanos(end) }, detours }
}

pub fn recording(traces: Vec<Trace>, intervals: Vec<Vec<Interval>>) -> Recording {
    let mut manifest = Manifest::new(Method::Detour, State::Complete);
    manifest.clock =
        Some(ClockFacts { name: "tsc".into(), ticks_per_second: 1e9, granularity_ns: 10.0, drift_ppm: 0.0 });
    manifest.sources = Some(SourcesFacts { own_pid: Some(4_242), ..SourcesFacts::default() });
    manifest.cpus = traces.iter().map(|t| CpuFacts::from_span(t.cpu, t.span)).collect();
    let of_cpu = |(trace, intervals): (&Trace, Vec<Interval>)| Intervals { cpu: trace.cpu, intervals };
    let intervals = traces.iter().zip(intervals).map(of_cpu).collect();
    let (quanta, threads) = (Vec::new(), Vec::new());
    Recording {
        path: PathBuf::from("made.quell"),
        manifest,
        traces,
        quanta,
        intervals,
        threads,
        histograms: Vec::new(),
    }
}
