//! The job that a prediction, advice, a study or an emulation is for: its numbers of ranks, its phases, and how the noise of its nodes
//! lines up.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use quell_analysis::predict::{Options, SyncName};
use quell_recording::Nanos;
use quell_sim::SyncMode;

use crate::{RankList, Usage, positive};

/// The options that describe a bulk-synchronous job, the same for every verb that has one.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct JobArgs {
    /// Numbers of ranks: a list (`16,256`) or a range that doubles (`16..2048`), with optional suffix `Ki` or `Mi` [default: 16..2048; for
    /// `study` and `report` 16..1Mi; for `advise` 4096].
    #[arg(long, value_name = "LIST")]
    pub ranks: Option<RankList>,
    /// Length of a compute phase without noise.
    #[arg(long, default_value = "1ms", value_name = "TIME")]
    pub quantum: Nanos,
    /// How the noise of the nodes lines up.
    #[arg(long, default_value = "none", value_parser = sync_names())]
    pub sync: SyncName,
    /// With --sync start: each node starts up to this much later.
    #[arg(long, default_value = "0ns", value_name = "TIME")]
    pub skew: Nanos,
    /// With --sync start: each node's noise trace runs faster or slower by up to this many parts per million.
    #[arg(long, default_value_t = 0.0, value_name = "PPM")]
    pub drift: f64,
    /// Number of phases to simulate. With messages, fewer are run at large scales, to bound the run time [default: 2000, at few ranks more;
    /// with --emulate 200].
    #[arg(long, value_name = "N")]
    pub phases: Option<u64>,
    /// Random seed; equal seeds give equal results.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// The values that a verb uses for options that are not given.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// Numbers of ranks.
    pub ranks: Vec<u64>,
    /// Number of phases.
    pub phases: u64,
    /// Minimum number of phases of all ranks together, if none are asked for.
    pub rank_phases: u64,
}

/// That many phases of all ranks together that chance hardly adds to what a minute's trace leaves open.
const RANK_PHASES: u64 = 500_000;

impl Defaults {
    /// The defaults of `predict`.
    pub fn for_prediction() -> Self {
        Self { ranks: RankList::doubling(16, 2048).0, phases: 2000, rank_phases: RANK_PHASES }
    }

    /// The defaults of `study` and `report`, whose curves go up to the size of the largest machines.
    pub fn for_study() -> Self {
        Self { ranks: RankList::doubling(16, 1 << 20).0, ..Self::for_prediction() }
    }

    /// The defaults of `advise`, which simulates the job once or more for each source and mitigation.
    pub fn for_advice() -> Self {
        Self { ranks: vec![4096], ..Self::for_prediction() }
    }

    /// The defaults of `replay --emulate`, which plays its phases in real time.
    pub fn for_emulation() -> Self {
        Self { ranks: RankList::doubling(16, 2048).0, phases: 200, rank_phases: 0 }
    }
}

impl JobArgs {
    /// The checked options of the job, without messages.
    ///
    /// # Errors
    /// [`Usage`] for options that contradict each other, or that describe no job.
    pub fn options(&self, defaults: &Defaults) -> Result<Options, Usage> {
        positive(self.quantum, "--quantum")?;
        let phases = self.phases.unwrap_or(defaults.phases);
        if phases == 0 {
            return Err(Usage("--phases 0 simulates nothing: give at least 1".into()));
        }
        let ranks = self.ranks.as_ref().map_or_else(|| defaults.ranks.clone(), |list| list.0.clone());
        let sync = self.sync_mode()?;
        let rank_phases = if self.phases.is_some() { 0 } else { defaults.rank_phases };
        Ok(Options {
            quantum: self.quantum,
            sync,
            phases,
            rank_phases,
            seed: self.seed,
            ..Options::new(ranks)
        })
    }

    /// How the noise of the nodes lines up, with skew and drift.
    ///
    /// # Errors
    /// [`Usage`] for skew or drift with a mode that has neither.
    pub fn sync_mode(&self) -> Result<SyncMode, Usage> {
        match self.sync {
            SyncName::Start => Ok(SyncMode::Start { skew: self.skew, drift_ppm: self.drift }),
            _ if self.skew != Nanos::ZERO || self.drift != 0.0 => {
                Err(Usage("--skew and --drift need --sync start".into()))
            }
            SyncName::None => Ok(SyncMode::None),
            SyncName::Phase => Ok(SyncMode::Phase),
        }
    }
}

impl Default for JobArgs {
    /// The values that the parser gives without arguments.
    fn default() -> Self {
        #[derive(clap::Parser)]
        struct Nothing {
            #[command(flatten)]
            job: JobArgs,
        }
        <Nothing as clap::Parser>::parse_from(["quell"]).job
    }
}

/// Parses the name of a sync mode, and supplies the help text of each.
fn sync_names() -> impl TypedValueParser<Value = SyncName> {
    let meaning = |name: SyncName| match name {
        SyncName::None => "Each node starts at its own offset in the trace",
        SyncName::Start => "All nodes start at the same offset, then drift apart",
        SyncName::Phase => "The same offset in every phase: perfect co-scheduling",
    };
    let value = |name: SyncName| PossibleValue::new(name.as_str()).help(meaning(name));
    PossibleValuesParser::new(SyncName::ALL.map(value)).try_map(|typed| typed.parse::<SyncName>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imperfections_belong_to_one_mode() {
        let skew = Nanos::from_nanos(5);
        let job = |sync| JobArgs { sync, skew, ..JobArgs::default() };
        assert!(job(SyncName::None).sync_mode().is_err() && job(SyncName::Phase).sync_mode().is_err());
        assert_eq!(job(SyncName::Start).sync_mode().ok(), Some(SyncMode::Start { skew, drift_ppm: 0.0 }));
    }

    #[test]
    fn what_is_not_given_is_the_verbs_default() {
        let options = JobArgs::default().options(&Defaults::for_advice());
        assert_eq!(options.map(|options| (options.ranks, options.phases)).ok(), Some((vec![4096], 2000)));
        let given = JobArgs { phases: Some(7), ranks: Some(RankList(vec![3])), ..JobArgs::default() };
        let options = given.options(&Defaults::for_study());
        assert_eq!(options.map(|options| (options.ranks, options.phases)).ok(), Some((vec![3], 7)));
        assert!(JobArgs { phases: Some(0), ..JobArgs::default() }.options(&Defaults::for_study()).is_err());
    }
}
