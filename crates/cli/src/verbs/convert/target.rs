//! The format to write, and which recordings it can hold.

use quell_recording::formats::{Format, catalogue};
use quell_recording::{Method, Recording};

use super::Request;
use crate::args::FormatName;

/// The format to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Recording,
    File(Format),
    /// An OTF2 archive.
    Otf2,
    OpenMetrics,
}

impl Target {
    /// Selected by `--to`, or by the extension of the name; netgauge's format by default.
    pub fn from_request(request: &Request<'_>) -> Self {
        let name = request.output.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if request.to.is_none() && name.ends_with(".quell") {
            return Self::Recording;
        }
        let ends = |format: &&catalogue::About| {
            format.extensions.iter().any(|end| name.strip_suffix(end).is_some_and(|stem| stem.ends_with('.')))
        };
        let reported = catalogue::FORMATS.iter().find(ends).and_then(|format| format.written);
        Self::named(request.to.map_or(reported.unwrap_or("netgauge"), FormatName::word))
    }

    fn named(word: &str) -> Self {
        match word {
            "otf2" => Self::Otf2,
            "openmetrics" => Self::OpenMetrics,
            word => Self::File(Format::from_name(word).unwrap_or(Format::Netgauge)),
        }
    }

    /// Whether it can hold recordings of this method.
    fn holds(self, method: Method) -> bool {
        let any = method != Method::Histogram;
        match self {
            Self::Recording => true,
            Self::Otf2 | Self::File(Format::Perfetto | Format::Chrome) => any,
            Self::OpenMetrics => matches!(method, Method::Detour | Method::Kernel | Method::Phases),
            Self::File(Format::Csv) => method != Method::Phases,
            Self::File(Format::Netgauge) => matches!(method, Method::Detour | Method::Fwq | Method::Ftq),
            Self::File(Format::LogGopSim) => method == Method::Detour,
            Self::File(Format::HdrHistogram) => matches!(method, Method::Detour | Method::Histogram),
            Self::File(Format::Vpsum | Format::Psnap) => method == Method::Phases,
        }
    }

    /// Refuses a format that cannot hold the recording.
    pub fn check(self, recording: &Recording, request: &Request<'_>) -> anyhow::Result<()> {
        let method = recording.manifest.method;
        if self.holds(method) {
            return Ok(());
        }
        let words = catalogue::FORMATS.iter().filter_map(|format| format.written);
        let others: Vec<&str> = words.filter(|word| Self::named(word).holds(method)).collect();
        anyhow::bail!(
            "{} holds {}; only a recording (NAME.quell) and --to {} have room for that",
            request.input.display(),
            method.holds(),
            others.join("|")
        );
    }
}
