//! How long a component's detours last.

use quell_recording::Nanos;
use rand_distr::weighted::WeightedAliasIndex;
use rand_distr::{Distribution, Exp1, OpenClosed01};
use rand_pcg::Pcg64;

use super::arrival::even;

/// A distribution of durations; every value is checked when the model is read.
#[derive(Clone, Debug)]
pub(super) enum Duration {
    Constant(Nanos),
    /// `min` plus an exponential tail, so that the overall mean is `mean`.
    Exponential {
        mean: Nanos,
        min: Nanos,
    },
    Uniform {
        min: Nanos,
        max: Nanos,
    },
    /// P(X > x) = (scale/x)^shape, cut off at `max` by conditioning on X ≤ max.
    Pareto {
        scale: Nanos,
        shape: f64,
        max: Option<Nanos>,
    },
    /// The given values in the given proportions.
    Empirical {
        values: Vec<Nanos>,
        weights: WeightedAliasIndex<f64>,
    },
}

impl Duration {
    pub(super) fn draw(&self, rng: &mut Pcg64) -> Nanos {
        match self {
            Self::Constant(value) => *value,
            Self::Exponential { mean, min } => {
                let tail: f64 = Exp1.sample(rng);
                *min + rounded(tail * (*mean - *min).as_nanos() as f64)
            }
            Self::Uniform { min, max } => even(*min, *max, rng),
            Self::Pareto { scale, shape, max } => {
                // By inversion; values past the cut have probability `beyond`.
                let (scale, beyond) = (scale.as_nanos() as f64, beyond(*scale, *shape, *max));
                let u: f64 = OpenClosed01.sample(rng);
                rounded(scale * (beyond + u * (1.0 - beyond)).powf(-1.0 / shape))
                    .min(max.unwrap_or(Nanos::MAX))
            }
            Self::Empirical { values, weights } => values[weights.sample(rng)],
        }
    }
}

/// P(X > max) of a Pareto distribution.
fn beyond(scale: Nanos, shape: f64, max: Option<Nanos>) -> f64 {
    max.map_or(0.0, |max| (scale.as_nanos() as f64 / max.as_nanos() as f64).powf(shape))
}

/// Rounds to the nearest whole nanosecond; a time that is too long becomes the longest one.
fn rounded(ns: f64) -> Nanos {
    Nanos::from_nanos_f64(ns).unwrap_or(Nanos::MAX)
}
