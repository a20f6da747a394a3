//! Writes HTML pages to files.

use std::path::Path;

use quell_page::Page;
use quell_recording::write_output;

/// Writes a page. It refuses to overwrite an existing file that is no HTML page.
pub fn write(path: &Path, page: &Page) -> anyhow::Result<()> {
    let is_page = path.extension().is_some_and(|extension| extension == "html" || extension == "htm");
    if path.exists() && !is_page {
        anyhow::bail!("{} exists already and is not named as a page: choose another name", path.display());
    }
    let html = page.html()?;
    Ok(write_output(path, |file| file.write_all(html.as_bytes()))?)
}
