//! Words for `quell serve-metrics`.

use std::net::SocketAddr;

use clap::Args as ClapArgs;
use quell_recording::Nanos;

use crate::values::CpuList;

/// `quell serve-metrics`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "EXAMPLES\n  quell serve-metrics                              then: curl http://127.0.0.1:9464/metrics\n  quell serve-metrics --listen 0.0.0.0:9464        for everyone who reaches this node\n  quell serve-metrics --cpus 2-7 --interval 10s\n\nPROMETHEUS\n  share of a CPU that a source takes:   rate(quell_noise_seconds_total[5m]) / on(instance, cpu) group_left() rate(quell_observed_seconds_total[5m])"
)]
pub struct ServeMetrics {
    /// Address and port to serve on. This machine alone reaches the default; others must be asked for.
    #[arg(long, default_value = "127.0.0.1:9464", value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
    /// CPUs to watch, as in `1,3-5`; all that this process may use, if not given.
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// How often the figures are renewed.
    #[arg(long, default_value = "1s", value_name = "TIME")]
    pub interval: Nanos,
    /// Probe the CPUs too, which takes them whole. Without it only what the kernel saw is told, and costs a node at work next to nothing.
    #[arg(long)]
    pub probe: bool,
}
