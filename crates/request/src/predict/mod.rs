//! `predict`: what the noise costs a bulk-synchronous program.

pub mod args;
mod request;

pub use args::PredictArgs;
pub use request::{explained, options, prediction, scale};
