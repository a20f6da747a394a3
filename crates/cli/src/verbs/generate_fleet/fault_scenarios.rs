//! The events of a synthetic node: periodic ticks, random interrupts and workers, rare tasks with heavy-tailed durations, and its fault.

use quell_recording::Source;
use rand::{Rng, RngExt as _};

use crate::args::{FaultScenario, GenerateFleet};

/// An event that takes a CPU.
#[derive(Clone, Debug)]
pub struct Event {
    pub start: u64,
    pub ns: u64,
    /// `None` if the kernel does not see it.
    pub source: Option<Source>,
    pub pid: u32,
}

/// The distribution of the durations of a kind of event.
#[derive(Clone, Copy, Debug)]
enum Length {
    /// Uniform, within a quarter around the mean.
    Near(f64),
    Exponential(f64),
    /// Pareto: from a scale on, with the exponent 1.5, up to 200 times the scale.
    Pareto(f64),
}

/// A kind of event on some CPUs.
#[derive(Clone, Debug)]
struct SourceModel {
    source: Option<Source>,
    pid: u32,
    /// `None` for all CPUs.
    cpu: Option<u32>,
    rate: f64,
    periodic: bool,
    length: Length,
}

/// A synthetic node.
#[derive(Clone, Debug)]
pub struct Node {
    models: Vec<SourceModel>,
    span_ns: u64,
    /// The CPU on which every event takes four times as long.
    slow_cpu: Option<u32>,
}

impl Node {
    /// Draws a node: its rates vary with a standard deviation of 10 %, its durations with one of 3 %.
    pub fn draw(args: &GenerateFleet, way: Option<FaultScenario>, draws: &mut impl Rng) -> Self {
        let hz = f64::from(args.tick_hz);
        let task = |name: &str| Some(Source::Task(name.into()));
        let mut models = vec![
            model(Some(Source::Tick), hz, true, Length::Near(2_500.0)),
            model(Some(Source::Softirq("TIMER".into())), hz / 4.0, false, Length::Exponential(1_200.0)),
            model(Some(Source::Ipi("reschedule".into())), 5.0, false, Length::Near(900.0)),
            SourceModel {
                cpu: Some(0),
                ..model(Some(Source::Irq("eth0".into())), 60.0, false, Length::Exponential(3_000.0))
            },
            model(task("kworker/1:2"), 1.0, false, Length::Exponential(20_000.0)),
            model(task("sshd"), 0.05 / f64::from(args.cpus), false, Length::Pareto(200_000.0)),
            model(task("cron"), 0.002 / f64::from(args.cpus), false, Length::Exponential(1_000_000.0)),
        ];
        let cpu = draws.random_range(0..args.cpus);
        for model in &mut models {
            model.rate *= 1.0 + 0.1 * normal(draws);
            let factor = 1.0 + 0.03 * normal(draws);
            model.length = match model.length {
                Length::Near(ns) => Length::Near(ns * factor),
                Length::Exponential(ns) => Length::Exponential(ns * factor),
                Length::Pareto(ns) => Length::Pareto(ns * factor),
            };
        }
        let mut slow_cpu = None;
        match way {
            None => {}
            Some(FaultScenario::Daemon) => {
                models.push(SourceModel {
                    cpu: Some(cpu),
                    ..model(task("crawld"), 0.5, true, Length::Near(10e6))
                });
            }
            Some(FaultScenario::TicksOften) => models[0].rate *= 2.0,
            Some(FaultScenario::TicksLong) => {
                if let Length::Near(ns) = &mut models[0].length {
                    *ns *= 2.0;
                }
            }
            Some(FaultScenario::Storm) => {
                let source = Some(Source::Irq("nvme0q1".into()));
                models.push(SourceModel {
                    cpu: Some(cpu),
                    ..model(source, 3_000.0, false, Length::Exponential(4_000.0))
                });
            }
            Some(FaultScenario::Hiccup) => models.push(model(None, 1.0, true, Length::Near(5e6))),
            Some(FaultScenario::Steal) => {
                models.push(model(Some(Source::Steal), 10.0, false, Length::Exponential(300_000.0)));
            }
            Some(FaultScenario::OneCpu) => slow_cpu = Some(cpu),
        }
        Self { models, span_ns: args.duration.as_nanos(), slow_cpu }
    }

    /// The events of a CPU, in order.
    pub fn events(&self, cpu: u32, draws: &mut impl Rng) -> Vec<Event> {
        let factor = if self.slow_cpu == Some(cpu) { 4.0 } else { 1.0 };
        let mut events = Vec::new();
        for model in self.models.iter().filter(|model| model.cpu.is_none_or(|one| one == cpu)) {
            let gap = 1e9 / model.rate.max(1e-9);
            let mut at = gap * draws.random::<f64>();
            while at < self.span_ns as f64 {
                let ns = ((model.length.draw(draws) * factor) as u64).max(200);
                events.push(Event { start: at as u64, ns, source: model.source.clone(), pid: model.pid });
                at += if model.periodic { gap } else { exponential(gap, draws) };
            }
        }
        events.sort_by_key(|event| event.start);
        events
    }
}

fn model(source: Option<Source>, rate: f64, periodic: bool, length: Length) -> SourceModel {
    let pid = if matches!(source, Some(Source::Task(_))) { 100 } else { 0 };
    SourceModel { source, pid, cpu: None, rate, periodic, length }
}

impl Length {
    fn draw(self, draws: &mut impl Rng) -> f64 {
        match self {
            Self::Near(mean) => mean * (0.875 + 0.25 * draws.random::<f64>()),
            Self::Exponential(mean) => exponential(mean, draws),
            Self::Pareto(scale) => scale * (1.0 - draws.random::<f64>()).powf(-1.0 / 1.5).min(200.0),
        }
    }
}

fn exponential(mean: f64, draws: &mut impl Rng) -> f64 {
    -mean * (1.0 - draws.random::<f64>()).ln()
}

/// A standard normal draw, clamped to ±3 (Irwin & Hall: the sum of twelve uniform draws).
fn normal(draws: &mut impl Rng) -> f64 {
    let sum: f64 = (0..12).map(|_| draws.random::<f64>()).sum();
    (sum - 6.0).clamp(-3.0, 3.0)
}
