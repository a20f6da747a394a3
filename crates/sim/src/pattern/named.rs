//! Patterns by name.

use super::binomial::Binomial;
use super::bruck::Bruck;
use super::bsp::Bsp;
use super::dissemination::{Dissemination, NWay};
use super::halo::Halo;
use super::hierarchical::Hierarchical;
use super::linear::Linear;
use super::list::LIST;
use super::pairwise::Pairwise;
use super::pipeline::Pipeline;
use super::rabenseifner::Rabenseifner;
use super::recursive_doubling::RecursiveDoubling;
use super::ring::Ring;
use super::scan::Scan;
use super::sweep::Sweep;
use super::training::Training;
use super::{Params, Pattern, PatternError, StepOps, Steps, UniformStep};
use crate::loggops::Shape;

/// Declares the named patterns, and forwards each method to the pattern at hand.
macro_rules! any_pattern {
    ($($kind:ident),* $(,)?) => {
        #[derive(Clone, Debug)]
        enum Kind {
            $($kind($kind),)*
        }

        $(impl From<$kind> for AnyPattern {
            fn from(pattern: $kind) -> Self {
                Self(Kind::$kind(pattern))
            }
        })*

        impl Pattern for AnyPattern {
            fn ranks(&self) -> u32 {
                match &self.0 { $(Kind::$kind(pattern) => pattern.ranks(),)* }
            }

            fn cpus(&self) -> u32 {
                match &self.0 { $(Kind::$kind(pattern) => pattern.cpus(),)* }
            }

            fn shapes(&self) -> &[Shape] {
                match &self.0 { $(Kind::$kind(pattern) => pattern.shapes(),)* }
            }

            fn lanes(&self) -> u32 {
                match &self.0 { $(Kind::$kind(pattern) => pattern.lanes(),)* }
            }

            #[inline]
            fn steps(&self, rank: u32, lane: u32) -> u32 {
                match &self.0 { $(Kind::$kind(pattern) => pattern.steps(rank, lane),)* }
            }

            #[inline]
            fn step(&self, rank: u32, lane: u32, step: u32, ops: &mut StepOps<'_>) {
                match &self.0 { $(Kind::$kind(pattern) => pattern.step(rank, lane, step, ops),)* }
            }

            fn uniform_step(&self, step: u32) -> Option<UniformStep> {
                match &self.0 { $(Kind::$kind(pattern) => pattern.uniform_step(step),)* }
            }

            fn totals(&self) -> Option<(u64, u64)> {
                match &self.0 { $(Kind::$kind(pattern) => pattern.totals(),)* }
            }
        }
    };
}

/// One of the named patterns.
#[derive(Clone, Debug)]
pub struct AnyPattern(Kind);

any_pattern!(
    Binomial,
    Bruck,
    Bsp,
    Dissemination,
    Halo,
    Hierarchical,
    Linear,
    NWay,
    Pairwise,
    Pipeline,
    Rabenseifner,
    RecursiveDoubling,
    Ring,
    Scan,
    Sweep,
    Training,
);

/// The pattern with this name or alias of [`LIST`], with the number of iterations in the parameters.
///
/// # Errors
/// For a name that is not in the list, and for parameters out of their ranges or that do not fit together.
pub fn by_name(name: &str, params: &Params) -> Result<Steps<AnyPattern>, PatternError> {
    params.check()?;
    Ok(Steps::new(one(name, params)?, params.iterations))
}

/// One iteration of a pattern.
fn one(name: &str, params: &Params) -> Result<AnyPattern, PatternError> {
    let known = LIST.iter().find(|entry| entry.name == name || entry.aliases.contains(&name));
    Ok(match known.map_or("", |entry| entry.name) {
        "dissemination" => Dissemination::new(params).into(),
        "nway-dissemination" => NWay::new(params).into(),
        "linear-scatter" => Linear::scatter(params).into(),
        "linear-gather" => Linear::gather(params).into(),
        "binomial-bcast" => Binomial::bcast(params).into(),
        "binomial-reduce" => Binomial::reduce(params).into(),
        "binomial-scatter" => Binomial::scatter(params)?.into(),
        "binomial-gather" => Binomial::gather(params)?.into(),
        "pipelined-ring" => Pipeline::new(params)?.into(),
        "allreduce-recursive-doubling" => RecursiveDoubling::new(params).into(),
        "allreduce-rabenseifner" => Rabenseifner::new(params).into(),
        "allreduce-ring" => Ring::allreduce(params).into(),
        "allreduce-hierarchical" => hierarchical(params)?.into(),
        "reduce-scatter" => Ring::reduce_scatter(params).into(),
        "allgather-ring" => Ring::allgather(params).into(),
        "allgather-bruck" => Bruck::allgather(params)?.into(),
        "alltoall-pairwise" => Pairwise::new(params).into(),
        "alltoall-bruck" => Bruck::alltoall(params)?.into(),
        "scan" => Scan::new(params).into(),
        "halo" => halo(name, params)?.into(),
        "sweep" => Sweep::new(params)?.into(),
        "bsp" => bsp(params)?.into(),
        "training-step" => Training::new(params)?.into(),
        _ => return Err(PatternError::Unknown { name: name.to_owned() }),
    })
}

/// Work and an inner pattern, which uses its own default inner pattern.
fn bsp(params: &Params) -> Result<Bsp, PatternError> {
    let inner = params.inner.as_deref().unwrap_or("dissemination");
    Bsp::new(params, one(inner, &Params { inner: None, ..params.clone() })?)
}

/// A node-aware allreduce with an inner pattern for the leaders.
fn hierarchical(params: &Params) -> Result<Hierarchical, PatternError> {
    let inner = params.inner.as_deref().unwrap_or("allreduce-recursive-doubling");
    Hierarchical::check_inner(inner)?;
    let leaders = Params { ranks: Hierarchical::leaders(params), inner: None, ..params.clone() };
    Ok(Hierarchical::new(params, one(inner, &leaders)?))
}

/// A halo exchange by name; an alias fixes the number of dimensions.
fn halo(name: &str, params: &Params) -> Result<Halo, PatternError> {
    match name {
        "halo1d" => Halo::new(params, "halo1d", 1..=1, 1),
        "halo2d" => Halo::new(params, "halo2d", 2..=2, 2),
        "halo3d" => Halo::new(params, "halo3d", 3..=3, 3),
        "halo4d" => Halo::new(params, "halo4d", 4..=4, 4),
        _ => Halo::new(params, "halo", 1..=4, 3),
    }
}
