//! Words for fleets of nodes.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use quell_recording::Nanos;

/// What may be wrong with a made-up node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// A daemon that no other node has: 10 ms every 2 s.
    Daemon,
    /// Ticks come twice as often.
    TicksOften,
    /// Ticks last twice as long.
    TicksLong,
    /// 3,000 interrupts a second on one CPU.
    Storm,
    /// 5 ms once a second that the kernel does not see.
    Hiccup,
    /// A hypervisor that takes 300 us ten times a second.
    Steal,
    /// All lasts four times as long on one CPU.
    OneCpu,
}

/// `quell generate-fleet`.
#[derive(Debug, ClapArgs)]
pub struct GenerateFleet {
    /// Folder for the recordings.
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// Nodes.
    #[arg(long)]
    pub nodes: u64,
    /// Of these, so many are ill.
    #[arg(long, default_value_t = 0)]
    pub ill: u64,
    /// In these ways, in turn.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "daemon,ticks-often,storm")]
    pub ways: Vec<Way>,
    /// How long each was recorded.
    #[arg(long, default_value = "10s")]
    pub duration: Nanos,
    /// CPUs of a node.
    #[arg(long, default_value_t = 4)]
    pub cpus: u32,
    /// Ticks a second.
    #[arg(long, default_value_t = 250)]
    pub tick_hz: u32,
    /// Leave the kernel's side out.
    #[arg(long)]
    pub no_sources: bool,
    /// Seed of all draws.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}
