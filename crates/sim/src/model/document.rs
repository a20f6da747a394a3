//! The TOML of a model, as written, and the checks that convert it.

use std::collections::BTreeMap;

use quell_recording::Nanos;
use rand_distr::weighted::WeightedAliasIndex;
use serde::Deserialize;

use super::arrival::{Arrival, Phase};
use super::duration::Duration;
use super::{Component, MAX_CPUS, Model, ModelError};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    name: Option<String>,
    span: Option<String>,
    cpus: Option<u32>,
    #[serde(default)]
    component: Vec<WrittenComponent>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenComponent {
    name: Option<String>,
    periodic: Option<Periodic>,
    poisson: Option<Poisson>,
    duration: WrittenDuration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Periodic {
    period: String,
    jitter: Option<String>,
    phase: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Poisson {
    rate: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum WrittenDuration {
    Constant(String),
    Exponential { mean: String, min: Option<String> },
    Uniform { min: String, max: String },
    Pareto { scale: String, shape: f64, max: Option<String> },
    Empirical { values: Vec<String>, weights: Option<Vec<f64>> },
}

impl Document {
    pub(super) fn check(self) -> Result<Model, ModelError> {
        let place = Place("the noise model".to_owned());
        let span = self.span.map(|text| place.some_time("span", &text)).transpose()?;
        let cpus = self.cpus.unwrap_or(1);
        if !(1..=MAX_CPUS).contains(&cpus) {
            return Err(place.refuse("cpus", format!("{cpus} is not between 1 and {MAX_CPUS}")));
        }
        if self.component.is_empty() {
            return Err(place.refuse("component", "there is none; write at least one `[[component]]`"));
        }
        let components = self.component.into_iter().enumerate();
        let components = components.map(|(i, component)| component.check(i + 1)).collect::<Result<_, _>>()?;
        Ok(Model { name: self.name, span, cpus, components })
    }
}

impl WrittenComponent {
    fn check(self, number: usize) -> Result<Component, ModelError> {
        let unnamed = format!("component {number}");
        let place = Place(match &self.name {
            Some(name) => format!("{unnamed} ({name:?})"),
            None => unnamed.clone(),
        });
        let arrival = match (self.periodic, self.poisson) {
            (Some(periodic), None) => periodic.check(&place)?,
            (None, Some(poisson)) => Arrival::Poisson { per_ns: place.rate("poisson.rate", &poisson.rate)? },
            _ => return Err(place.refuse("periodic, poisson", "write exactly one of the two")),
        };
        Ok(Component { name: self.name.unwrap_or(unnamed), arrival, duration: self.duration.check(&place)? })
    }
}

impl Periodic {
    fn check(self, place: &Place) -> Result<Arrival, ModelError> {
        let period = place.some_time("periodic.period", &self.period)?;
        let jitter =
            self.jitter.map(|text| place.time("periodic.jitter", &text)).transpose()?.unwrap_or_default();
        if jitter > period {
            return Err(
                place.refuse("periodic.jitter", format!("{jitter} is longer than the period, {period}"))
            );
        }
        let phase = match self.phase.as_deref() {
            None => Phase::Fixed(Nanos::ZERO),
            Some("random") => Phase::Random,
            Some(text) => Phase::Fixed(place.time("periodic.phase", text)?),
        };
        Ok(Arrival::Periodic { period, jitter, phase })
    }
}

impl WrittenDuration {
    fn check(self, place: &Place) -> Result<Duration, ModelError> {
        Ok(match self {
            Self::Constant(text) => Duration::Constant(place.some_time("duration.constant", &text)?),
            Self::Exponential { mean, min } => {
                let mean = place.some_time("duration.exponential.mean", &mean)?;
                let field = "duration.exponential.min";
                let min = min.map(|text| place.time(field, &text)).transpose()?.unwrap_or_default();
                place.in_order(field, min, mean, "the mean")?;
                Duration::Exponential { mean, min }
            }
            Self::Uniform { min, max } => {
                let min = place.time("duration.uniform.min", &min)?;
                let max = place.some_time("duration.uniform.max", &max)?;
                place.in_order("duration.uniform.min", min, max, "the max")?;
                Duration::Uniform { min, max }
            }
            Self::Pareto { scale, shape, max } => {
                let scale = place.some_time("duration.pareto.scale", &scale)?;
                let shape = place.positive("duration.pareto.shape", shape)?;
                let max = max.map(|text| place.some_time("duration.pareto.max", &text)).transpose()?;
                place.in_order("duration.pareto.scale", scale, max.unwrap_or(Nanos::MAX), "the max")?;
                Duration::Pareto { scale, shape, max }
            }
            Self::Empirical { values, weights } => place.empirical(&values, weights)?,
        })
    }
}

/// The position of a value in the file, to name it in errors.
struct Place(String);

impl Place {
    fn refuse(&self, field: &'static str, reason: impl Into<String>) -> ModelError {
        ModelError::Field { place: self.0.clone(), field, reason: reason.into() }
    }

    fn time(&self, field: &'static str, text: &str) -> Result<Nanos, ModelError> {
        text.parse().map_err(|error| self.refuse(field, format!("{error}")))
    }

    fn some_time(&self, field: &'static str, text: &str) -> Result<Nanos, ModelError> {
        match self.time(field, text)? {
            Nanos::ZERO => Err(self.refuse(field, "it is zero; write a time above it")),
            time => Ok(time),
        }
    }

    fn positive(&self, field: &'static str, value: f64) -> Result<f64, ModelError> {
        if value > 0.0 && value.is_finite() {
            Ok(value)
        } else {
            Err(self.refuse(field, format!("{value} is not a number above zero")))
        }
    }

    fn in_order(&self, field: &'static str, low: Nanos, high: Nanos, of: &str) -> Result<(), ModelError> {
        if low <= high { Ok(()) } else { Err(self.refuse(field, format!("{low} is over {of}, {high}"))) }
    }

    /// Reads `0.6/ms` as detours per nanosecond.
    fn rate(&self, field: &'static str, text: &str) -> Result<f64, ModelError> {
        let units =
            BTreeMap::from([("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 6e10), ("h", 3.6e12)]);
        let rate = text
            .split_once('/')
            .and_then(|(number, unit)| Some(number.trim().parse::<f64>().ok()? / units.get(unit.trim())?));
        let rate = rate
            .ok_or_else(|| self.refuse(field, format!("`{text}` is not a rate (write `0.6/ms`, `100/s`)")))?;
        self.positive(field, rate)
    }

    fn empirical(&self, values: &[String], weights: Option<Vec<f64>>) -> Result<Duration, ModelError> {
        let field = "duration.empirical.values";
        let values = values.iter().map(|text| self.some_time(field, text)).collect::<Result<Vec<_>, _>>()?;
        if values.is_empty() {
            return Err(self.refuse(field, "there is none; write at least one time"));
        }
        let weights = weights.unwrap_or_else(|| vec![1.0; values.len()]);
        let field = "duration.empirical.weights";
        if weights.len() != values.len() {
            let reason =
                format!("there are {} for {} values; write one for each", weights.len(), values.len());
            return Err(self.refuse(field, reason));
        }
        let weights =
            WeightedAliasIndex::new(weights).map_err(|error| self.refuse(field, format!("{error}")))?;
        Ok(Duration::Empirical { values, weights })
    }
}
