//! Converts netgauge's LogGP results to a network for `--net`.

use std::io::Read as _;
use std::path::Path;

use quell_analysis::bench::loggp::netgauge;
use quell_recording::whole_file;

use super::Request;
use crate::printer::Printer;
use quell_request::Usage;

/// Maximum size of a file in bytes, far above what netgauge writes.
const MOST_BYTES: u64 = 64 << 20;

/// Whether the file holds netgauge's LogGP results.
pub(super) fn is_one(path: &Path) -> anyhow::Result<bool> {
    if !path.is_file() {
        return Ok(false);
    }
    let mut head = Vec::new();
    fs_err::File::open(path)?.take(256).read_to_end(&mut head)?;
    let head = String::from_utf8_lossy(&head);
    Ok(head.trim_start().trim_start_matches('#').trim_start().starts_with(netgauge::HEADER))
}

pub(super) fn convert(request: &Request<'_>, printer: Printer) -> anyhow::Result<()> {
    let (input, output) = (request.input, request.output);
    if request.to.is_some() || output.extension().is_none_or(|extension| extension != "toml") {
        let text = format!("{} holds a network: write it to NAME.toml, which `--net` reads", input.display());
        return Err(Usage(text).into());
    }
    super::must_be_new(output)?;
    let text = String::from_utf8_lossy(&whole_file::read(input, MOST_BYTES)?).into_owned();
    let source = input.file_name().unwrap_or_default().to_string_lossy();
    let malformed = |reason: String| anyhow::anyhow!("{}: {reason}", input.display());
    let (preset, known) = netgauge::read(&text, &source).map_err(malformed)?;
    let text = preset.to_toml().map_err(malformed)?;
    super::into_file(output, |file| file.write_all(text.as_bytes()))?;
    known.iter().for_each(|one| printer.warn(one));
    let ranges = match preset.ranges.len() {
        1 => "one range of sizes".to_owned(),
        several => format!("{several} ranges of sizes"),
    };
    printer.status(&format!("{0} holds a network with {ranges}: `--net {0}`", output.display()));
    Ok(())
}
