//! Arguments of `quell serve-metrics`.

use std::net::SocketAddr;

use clap::Args as ClapArgs;
use quell_recording::Nanos;

use crate::values::CpuList;

/// Arguments of `quell serve-metrics`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell serve-metrics                              then: curl http://127.0.0.1:9464/metrics\n  quell serve-metrics --listen 0.0.0.0:9464        for everyone who reaches this node\n  quell serve-metrics --cpus 2-7 --interval 10s\n\nPROMETHEUS\n  share of a CPU that a source takes:   rate(quell_noise_seconds_total[5m]) / on(instance, cpu) group_left() rate(quell_observed_seconds_total[5m])"
)]
pub struct ServeMetrics {
    /// Address and port to listen on. The default can be reached from this machine only.
    #[arg(long, default_value = "127.0.0.1:9464", value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
    /// CPUs to record, as in `1,3-5`; all that this process may use, if not given.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// How often to update the figures.
    #[arg(long, default_value = "1s", value_name = "TIME")]
    pub interval: Nanos,
    /// Probe the CPUs too, which occupies them fully. Without it, only what the kernel sees is reported, which costs a busy node next to
    /// nothing.
    #[arg(long)]
    pub probe: bool,
}
