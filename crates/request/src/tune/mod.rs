//! Results of `quell tune`.

pub mod audit;
pub mod trial;
