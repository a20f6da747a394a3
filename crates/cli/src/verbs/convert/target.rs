//! The format to write, and which recordings it can hold.

use quell_recording::formats::{Format, catalogue};
use quell_recording::{Method, Recording};

use quell_request::Usage;

use super::Request;

/// Extensions of plain text, which is netgauge's format.
const TEXT: [&str; 3] = ["txt", "out", "dat"];

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
    /// Selected by `--to`, or by the extension of the name; netgauge's format for text and for a name without an extension.
    ///
    /// # Errors
    /// [`Usage`] for an extension that selects none.
    pub fn from_request(request: &Request<'_>) -> Result<Self, Usage> {
        if let Some(to) = request.to {
            return Ok(Self::named(to.word()));
        }
        let name = request.output.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".quell") {
            return Ok(Self::Recording);
        }
        let ends = |format: &&catalogue::About| {
            format.extensions.iter().any(|end| name.strip_suffix(end).is_some_and(|stem| stem.ends_with('.')))
        };
        if let Some(word) = catalogue::FORMATS.iter().find(ends).and_then(|format| format.written) {
            return Ok(Self::named(word));
        }
        match request.output.extension() {
            Some(other) if !TEXT.iter().any(|text| other == *text) => {
                let known = catalogue::FORMATS.iter().filter(|format| format.written.is_some());
                let known: Vec<_> =
                    known.flat_map(|format| format.extensions).map(|end| format!(".{end}")).collect();
                Err(Usage(format!(
                    "{}: no format has the extension `.{}`: use .quell, {} or .txt (netgauge), or name the format with --to",
                    request.output.display(),
                    other.display(),
                    known.join(", ")
                )))
            }
            _ => Ok(Self::File(Format::Netgauge)),
        }
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
            Self::File(Format::Csv) => !matches!(method, Method::Phases | Method::Memory),
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
