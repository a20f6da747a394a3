//! Arguments of `quell convert`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

/// A format that `convert` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatName {
    /// A table with a header, of detours, quanta, the kernel's intervals or histograms.
    Csv,
    /// netgauge's file of one CPU: selfish detours, or FWQ or FTQ quanta, depending on the recording.
    Netgauge,
    /// LogGOPSim's noise file of one CPU.
    #[value(name = "loggopsim")]
    LogGopSim,
    /// IBM's vpsum: each iteration of a rank.
    Vpsum,
    /// LANL's PSNAP: a histogram of the quanta of each rank, in us.
    Psnap,
    /// An HdrHistogram log: the durations of detours, or the counts of a histogram.
    #[value(name = "hdrhistogram")]
    HdrHistogram,
    /// A Perfetto trace: detours and the kernel's intervals on one clock, for ui.perfetto.dev.
    Perfetto,
    /// Chrome's JSON trace.
    Chrome,
    /// An OTF2 archive with a location for each CPU.
    Otf2,
    /// Sums by CPU and source, as text for Prometheus.
    #[value(name = "openmetrics")]
    OpenMetrics,
}

impl FormatName {
    /// The name as given on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Netgauge => "netgauge",
            Self::LogGopSim => "loggopsim",
            Self::Vpsum => "vpsum",
            Self::Psnap => "psnap",
            Self::HdrHistogram => "hdrhistogram",
            Self::Perfetto => "perfetto",
            Self::Chrome => "chrome",
            Self::Otf2 => "otf2",
            Self::OpenMetrics => "openmetrics",
        }
    }
}

/// Arguments of `quell convert`.
#[derive(Debug, ClapArgs)]
#[command(after_help = crate::render::formats::help())]
pub struct Convert {
    /// A recording, another tool's file, or a folder of vpsum files.
    #[arg(value_name = "IN", required_unless_present = "list")]
    pub input: Option<PathBuf>,
    /// The file to write. Its name selects the format: `NAME.quell` is a recording, `NAME.toml` a network; `--list` gives the names of the
    /// other formats. Plain text (`.txt`, `.out`, `.dat`, or no extension) is netgauge's format.
    #[arg(value_name = "OUT", required_unless_present = "list")]
    pub output: Option<PathBuf>,
    /// The format of OUT, if its name does not select it.
    #[arg(long, value_enum)]
    pub to: Option<FormatName>,
    /// Convert only this CPU.
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// Convert only this rank of an MPI program.
    #[arg(long, value_name = "N")]
    pub rank: Option<u32>,
    /// List all formats: what quell reads, what it writes, and what each format cannot hold.
    #[arg(long, conflicts_with_all = ["input", "output", "to", "cpu", "rank"])]
    pub list: bool,
    /// With --list: print one JSON document (schema quell.formats/1).
    #[arg(long, requires = "list")]
    pub json: bool,
}
