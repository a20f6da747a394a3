//! Tables in, findings out: statistics, attribution, periods, comparison of recordings, prediction to scale.
//!
//! Nothing here touches a machine: every finding is a function of traces, options and a seed, so each can be tested
//! with tables. The documents that `--json` prints are the structs of this crate; their schemas are generated.

pub mod advise;
pub mod attribution;
pub mod bench;
mod chance;
pub mod compare;
pub mod density;
mod downsample;
pub mod emulation;
pub mod fleet;
pub mod histogram_summary;
pub mod interleaved;
pub mod live;
pub mod memory;
pub mod mitigation_coverage;
pub mod observer;
pub mod overview;
pub mod periods;
pub mod predict;
mod progress;
pub mod replay;
pub mod show;
pub mod simultaneous;
pub mod stats;
pub mod sweep;
mod time_range;
pub mod track;
pub mod trial;
pub mod validation;
pub mod warning;
pub mod whatif;

pub use downsample::downsample;
pub use progress::{NO_PROGRESS, Progress, Stopped};
pub use warning::Warning;
