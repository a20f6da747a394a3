//! The recordings of a trial: each pair has one with the mitigation and one without, in random order.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quell_analysis::trial::{Design, Round, Trial, Verdict, trial};
use quell_node::probe::{self, Threshold};
use quell_recording::{Cpu, Method, Nanos, Recording};
use quell_request::tune::trial::{Limits, Tried};
use quell_tune::Root;
use quell_tune::keeper::Until;
use quell_tune::place::started;
use quell_tune::plan::Plan;
use quell_tune::revert::{RevertError, revert_with_timeout};
use rand::{RngExt as _, SeedableRng as _};

use crate::args::{SourcesMode, TuneTry};
use crate::kernel_side::KernelSide;
use crate::printer::Printer;
use crate::progress::Step;
use crate::verbs::tune::apply::{TIMEOUT, applied};

/// Detours below this threshold are the probe's own loop.
const THRESHOLD: Nanos = Nanos::from_nanos(150);

/// How often a wait looks for a signal.
const LOOK: Duration = Duration::from_millis(100);

/// Maximum number of recordings of each side that are kept in memory, for predictions.
const MOST_KEPT: usize = 1000;

/// The time between a change and the recording that follows it: as long as the mitigation needs to take effect, and to lose it.
pub fn settle(args: &TuneTry, tried: &Tried) -> Nanos {
    args.settle.max(tried.settle)
}

/// The parameters of a trial.
pub struct Rounds<'a> {
    pub args: &'a TuneTry,
    pub root: &'a Root,
    pub plan: &'a Plan,
    pub tried: &'a Tried,
    pub cpus: &'a [Cpu],
    pub seed: u64,
    pub printer: Printer,
}

/// The recordings of a trial.
#[derive(Default)]
pub struct Sides {
    /// Each pair, as (without, with).
    pub pairs: Vec<(Round, Round)>,
    /// The recordings without the mitigation, for predictions.
    pub without: Vec<Recording>,
    /// The recordings with the mitigation.
    pub with: Vec<Recording>,
    /// The limits of the recordings.
    pub limits: Limits,
    /// The time that a pair took.
    pub per_pair: Duration,
}

impl Rounds<'_> {
    /// Runs pairs up to the last look, and judges them. Whatever happens, the mitigation is not applied at the end.
    pub fn run(&self) -> anyhow::Result<(Sides, Trial)> {
        let stopped = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP]
        {
            signal_hook::flag::register(signal, Arc::clone(&stopped))?;
        }
        let scratch = tempfile::tempdir()?;
        let folder = self.args.output.as_deref().unwrap_or(scratch.path());
        let mut sides = Sides::default();
        // Each mitigation has an order of its own, or a disturber of the trial's period would meet the same sides in all of them.
        let own =
            self.tried.id.bytes().fold(self.seed, |all, byte| all.wrapping_mul(31).wrapping_add(byte.into()));
        let mut coin = rand_pcg::Pcg64::seed_from_u64(own);
        let mut pairs = self.args.pairs as usize;
        let began = Instant::now();
        let mut look = 1;
        loop {
            self.record_pairs(pairs, folder, &mut coin, &stopped, &mut sides)?;
            let found = trial(&sides.pairs, &self.design(look));
            sides.per_pair = began.elapsed() / pairs as u32;
            let Some(next) = self.next_look(&found, &sides) else { return Ok((sides, found)) };
            self.printer.status(&format!("{pairs} pairs are inconclusive; the next look is at {next}"));
            (pairs, look) = (next, look + 1);
        }
    }

    fn design(&self, look: u32) -> Design {
        let look = self.args.until_resolved.then_some(look);
        Design {
            confidence: self.args.confidence,
            smallest: self.args.smallest,
            addresses: !self.tried.noise.is_empty(),
            look,
        }
    }

    /// The number of pairs at the next look, from the time that pairs take and never from their noise: the looks' levels assume that.
    fn next_look(&self, found: &Trial, sides: &Sides) -> Option<usize> {
        let now = sides.pairs.len();
        let none_taken = sides.limits.not_taken.len() == self.plan.writes.len();
        if !self.args.until_resolved || found.verdict != Verdict::Inconclusive || none_taken {
            return None;
        }
        let fit = self.args.at_most.as_secs_f64() / sides.per_pair.as_secs_f64().max(1e-3);
        let next = (2 * now).min(fit as usize);
        // A few pairs more would hardly show more, at a lower level.
        (next >= now + now / 4).then_some(next)
    }

    /// Records up to a number of pairs. A coin decides the order in each, so that chance is all that distinguishes the sides if there is
    /// no effect.
    fn record_pairs(
        &self,
        pairs: usize,
        folder: &Path,
        coin: &mut rand_pcg::Pcg64,
        stopped: &AtomicBool,
        sides: &mut Sides,
    ) -> anyhow::Result<()> {
        let first = sides.pairs.len();
        let bar = Step::new(self.printer, "try", Some(2 * (pairs - first) as u64));
        for pair in first..pairs {
            let mut rounds = [None, None];
            let with_first: bool = coin.random();
            for with in [with_first, !with_first] {
                let recording = self.round(folder, pair, with, stopped, sides)?;
                if stopped.load(Ordering::SeqCst) {
                    anyhow::bail!("interrupted after {pair} pairs; all settings are restored");
                }
                bar.reach((2 * (pair - first) + 1 + usize::from(with != with_first)) as u64);
                rounds[usize::from(with)] = Some(Round::from_recording(&recording, &self.tried.noise));
                let kept = if with { &mut sides.with } else { &mut sides.without };
                if kept.len() < MOST_KEPT {
                    kept.push(recording);
                }
            }
            if let [Some(without), Some(with)] = rounds {
                sides.pairs.push((without, with));
            }
        }
        Ok(())
    }

    fn round(
        &self,
        folder: &Path,
        pair: usize,
        with: bool,
        stopped: &AtomicBool,
        sides: &mut Sides,
    ) -> anyhow::Result<Recording> {
        if !with {
            return self.record(folder, pair, with, stopped, sides);
        }
        let me = std::process::id();
        let start =
            started(me).ok_or_else(|| anyhow::anyhow!("/proc does not show when this process started"))?;
        // If quell is killed now, a keeper reverts.
        let until = Some(Until { after: None, process: Some((me, start)) });
        let applied = applied(self.root, self.plan, until, &|| stopped.load(Ordering::SeqCst))?;
        if applied.id.is_none() {
            let why = match applied.already.is_empty() {
                true => "what it sets is gone",
                false => "another program set it",
            };
            anyhow::bail!("{why} during the trial, so the trial is void: try it again");
        }
        // What the kernel refuses once is refused in the trial, whatever it does later.
        for refused in &applied.refused {
            if !sides.limits.not_taken.iter().any(|(write, _)| *write == refused.0) {
                sides.limits.not_taken.push(refused.clone());
            }
        }
        let recorded = self.record(folder, pair, with, stopped, sides);
        if let Some(id) = &applied.id {
            let reverted = match revert_with_timeout(self.root, id, "quell tune try", TIMEOUT) {
                Err(RevertError::Unknown(_)) => {
                    anyhow::bail!(
                        "another process reverted it during the trial, so the trial is void: try it again"
                    )
                }
                other => other?,
            };
            if !reverted.is_whole() {
                anyhow::bail!("{}", crate::verbs::tune::revert::text(&reverted).trim_end());
            }
        }
        recorded
    }

    fn record(
        &self,
        folder: &Path,
        pair: usize,
        with: bool,
        stopped: &AtomicBool,
        sides: &mut Sides,
    ) -> anyhow::Result<Recording> {
        let settled = Instant::now() + Duration::from_nanos(settle(self.args, self.tried).as_nanos());
        while !stopped.load(Ordering::SeqCst)
            && let Some(left) = settled.checked_duration_since(Instant::now())
        {
            std::thread::sleep(left.min(LOOK));
        }
        let side = if with { "with" } else { "without" };
        let id = &self.tried.id;
        let output: PathBuf = folder.join(id).join(format!("{:03}-{side}.quell", pair + 1));
        fs_err::create_dir_all(folder.join(id))?;
        let plan = probe::Plan {
            cpus: self.cpus.to_vec(),
            method: Method::Detour,
            quantum: Nanos::from_nanos(1_000_000),
            threshold: Threshold::Absolute(THRESHOLD),
            duration: Some(self.args.duration),
            count: None,
            realtime: None,
            command: std::env::args().collect(),
        };
        let watched = quell_kernel::Plan { cpus: plan.cpus.clone(), ..Default::default() };
        let mut side = KernelSide::start(SourcesMode::On, watched, Printer::new(true))?;
        let manifest = probe::record(&plan, &output, stopped, &mut side, &mut |_| ())?;
        *(if with { &mut sides.limits.lost_with } else { &mut sides.limits.lost_without }) += manifest.lost();
        for warning in manifest.warnings {
            if !sides.limits.warnings.contains(&warning) {
                self.printer.warn(&warning.to_string());
                sides.limits.warnings.push(warning);
            }
        }
        Ok(Recording::open(&output)?)
    }
}
