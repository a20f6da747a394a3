//! LogGOPS parameters of a network, from the times of messages.
//!
//! `mpi/bench/loggp.c` measures PRTT(n, d, s), the time of n messages of s bytes, d apart, and one answer (Hoefler, Lichei & Rehm,
//! "Low-Overhead LogGP Parameter Assessment for Modern Interconnection Networks", IPDPS 2007). From these it derives, for each size:
//!
//! - half a round trip, PRTT(1, 0, s) / 2,
//! - the interval of messages, (PRTT(n, 0, s) − PRTT(1, 0, s)) / (n − 1),
//! - o_s and o_r, the CPU time of a send whose receiver computes, and of a receive whose message has arrived; and the paper's o_s,
//!   (PRTT(n, d, s) − PRTT(1, 0, s)) / (n − 1) − d, which includes the interference between the two CPUs.
//!
//! The parameters are those of the physical rules of `docs/reference/loggops.md`, where half a round trip takes 2·o + L + (s − 1)·G, and
//! messages to one receiver follow each other by g + (s − 1)·G as long as o ≤ g and O ≤ G. So L is half a round trip
//! less 2·o (the paper's L includes them), and o, the mean of o_s and o_r, is bounded by g and by half the time; O by G.
//! Above S a request and an answer go before the data: half a round trip takes 3·L + 4·o + (s − 1)·G, and sends that wait for their
//! answers follow each other by 2·(L + o) + g + (s − 1)·G.
//!
//! Few libraries fit one line, because protocols change with the size. So the sizes are cut into [`Range`]s, each as long as one set of
//! parameters is within [`TOLERANCE`] of both times, and never across S. The overall parameters fit the smallest
//! message (L, o, g) and the largest ones (G).
//!
//! Times are lower quartiles, of a round's samples and then of rounds, because noise only adds time. Intervals are the 5th and 95th
//! percentile over resampled rounds (Efron 1979).

mod check;
mod document;
mod fit;
pub mod netgauge;
pub mod preset;
mod samples;
#[cfg(test)]
mod tests;

use quell_recording::rank_file::RankFile;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

pub use document::{Check, Comparison, Document, IntervalFit, Kind, Parameters, Range, SCHEMA, SizeTimes};
use fit::Figures;
pub use fit::TOLERANCE;
pub use samples::{Estimate, KindName};
use samples::{Samples, Threshold};

use crate::Warning;
use crate::stats::{ascending, type7_nearest};

/// Number of resampled sets of rounds for an interval.
const REPLICATES: usize = 200;
/// Fixed, so that equal files give equal documents.
const SEED: u64 = 1;

/// The parameters of the networks between the job's ranks.
///
/// # Errors
/// If the file of rank 0 is not among `files`, or holds no message times.
pub fn analyse(files: &[RankFile]) -> Result<Document, String> {
    let file = files.iter().find(|file| file.number::<u64>("rank") == Some(0));
    let file = file.ok_or("the file of rank 0, which measures, is missing")?;
    let names = [KindName::Intra, KindName::Inter];
    let kinds = names.into_iter().filter_map(|name| kind(file, name)).collect::<Vec<_>>();
    if kinds.is_empty() {
        return Err("rank 0 measured no messages: the job ended too early, or was another benchmark".into());
    }
    let fact = |name: &str| file.facts.get(name).cloned().unwrap_or_default();
    Ok(Document {
        schema: SCHEMA.to_owned(),
        mpi: fact("mpi"),
        unix_ns: file.number("unix_ns").unwrap_or(0),
        warnings: warnings(file, &kinds),
        kinds,
    })
}

fn kind(file: &RankFile, name: KindName) -> Option<Kind> {
    let samples = Samples::from_file(file, name)?;
    let threshold = Threshold::from_file(file, name);
    let limit = threshold.bytes();
    let points = samples.points(0..samples.rounds());
    let spans = fit::spans(&points, limit);
    let fitted = Figures::from_points(&points, &spans, limit)?;
    let mut replicates: Vec<Vec<f64>> = Vec::new();
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    for _ in 0..REPLICATES {
        let drawn: Vec<usize> =
            (0..samples.rounds()).map(|_| random.random_range(0..samples.rounds())).collect();
        let points = samples.points(drawn.into_iter());
        replicates.extend(Figures::from_points(&points, &spans, limit).map(|figures| figures.flat()));
    }
    let estimates = estimates(&fitted.flat(), &replicates);
    let (parameters, ranges) = document::parameters(&estimates, &points, &spans, limit);
    let checks = check::checks(&samples, &parameters, &ranges, limit);
    Some(Kind {
        kind: name,
        hosts: samples.hosts.clone(),
        partner: samples.partner,
        rounds: samples.rounds() as u64,
        parameters,
        eager_limit_bytes: threshold.estimate(),
        eager_limit_found: threshold.found(),
        ranges,
        sizes: points.iter().map(SizeTimes::from_point).collect(),
        checks,
    })
}

/// Each figure with the 5th and 95th percentile over resampled rounds.
fn estimates(values: &[f64], replicates: &[Vec<f64>]) -> Vec<Estimate> {
    let estimate = |(index, &value): (usize, &f64)| {
        let drawn = ascending(replicates.iter().filter_map(|replicate| replicate.get(index).copied()));
        let (low, high) = (type7_nearest(&drawn, 0.05), type7_nearest(&drawn, 0.95));
        Estimate { value, low: low.unwrap_or(value).min(value), high: high.unwrap_or(value).max(value) }
    };
    values.iter().enumerate().map(estimate).collect()
}

fn warnings(file: &RankFile, kinds: &[Kind]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if file.torn
        || !file.facts.contains_key("ended") && file.series.iter().all(|s| !s.facts.contains_key("ended"))
    {
        warnings.push(Warning::EndedEarly);
    }
    if file.number::<u64>("yields") == Some(1) {
        warnings.push(Warning::MoreRanksThanCpus);
    }
    for Kind { kind, rounds, eager_limit_found, eager_limit_bytes, .. } in kinds {
        let kind = kind.word().to_owned();
        if *rounds < 3 {
            warnings.push(Warning::FewRounds { kind: kind.clone(), rounds: *rounds });
        }
        if !eager_limit_found {
            warnings.push(Warning::NoEagerLimit { kind, tried_bytes: eager_limit_bytes.value });
        }
    }
    warnings
}
