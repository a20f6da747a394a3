//! Arguments of `quell generate-fleet`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use quell_recording::Nanos;

/// A fault of a synthetic node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultScenario {
    /// A daemon that no other node runs: 10 ms every 2 s.
    Daemon,
    /// Ticks occur twice as often.
    TicksOften,
    /// Ticks take twice as long.
    TicksLong,
    /// 3,000 interrupts a second on one CPU.
    Storm,
    /// 5 ms once a second that the kernel does not see.
    Hiccup,
    /// A hypervisor that takes the CPU for 300 us ten times a second.
    Steal,
    /// Everything takes four times as long on one CPU.
    OneCpu,
}

/// Arguments of `quell generate-fleet`.
#[derive(Debug, ClapArgs)]
pub struct GenerateFleet {
    /// Folder for the recordings.
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// Number of nodes.
    #[arg(long)]
    pub nodes: u64,
    /// Number of nodes that have a fault.
    #[arg(long, default_value_t = 0)]
    pub ill: u64,
    /// Their faults, in turn.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "daemon,ticks-often,storm")]
    pub ways: Vec<FaultScenario>,
    /// Length of each recording.
    #[arg(long, default_value = "10s")]
    pub duration: Nanos,
    /// Number of CPUs of a node.
    #[arg(long, default_value_t = 4)]
    pub cpus: u32,
    /// Number of ticks per second.
    #[arg(long, default_value_t = 250)]
    pub tick_hz: u32,
    /// Write no kernel intervals.
    #[arg(long)]
    pub no_sources: bool,
    /// Random seed of all draws.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}
