//! What `quell tune` answers.

pub mod audit;
pub mod trial;
