//! A file that is there whole, or not at all.

use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes beside the place, then moves there, so that nothing half written stays.
pub fn write(output: &Path, make: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    // A device, a pipe, or a link to one is written into: nothing may take its place.
    if output.symlink_metadata().is_ok_and(|facts| !facts.is_file()) {
        let mut file =
            BufWriter::with_capacity(1 << 20, fs_err::OpenOptions::new().write(true).open(output)?);
        make(&mut file)?;
        return file.flush();
    }
    let mut beside = output.as_os_str().to_owned();
    beside.push(".part");
    let beside = Path::new(&beside);
    let written = fs_err::File::create(beside).map(|file| BufWriter::with_capacity(1 << 20, file));
    let written = written.and_then(|mut file| {
        make(&mut file)?;
        file.flush()?;
        fs_err::rename(beside, output)
    });
    if written.is_err() {
        // The first error is what the reader must know.
        let _ = fs_err::remove_file(beside);
    }
    written
}
