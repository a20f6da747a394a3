//! Suggestions for the path of a recording that does not exist.

use std::path::Path;

use quell_recording::Error;

use crate::printer::one_line;

/// Maximum number of suggestions, and of folder entries to compare.
const MOST: usize = 3;
const LOOKED_AT: usize = 10_000;

/// A line to print below an error: recordings next to the missing one that have a similar name.
pub fn hint(error: &anyhow::Error) -> Option<String> {
    let missing = error.chain().find_map(|cause| match cause.downcast_ref::<Error>() {
        Some(Error::NotARecording { path, .. }) if !path.exists() => Some(path),
        _ => None,
    })?;
    let near = near(missing);
    (!near.is_empty()).then(|| format!("did you mean {}?", near.join(" or ")))
}

fn near(missing: &Path) -> Vec<String> {
    let folder = missing.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let wanted = name(missing);
    let entries = fs_err::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let recordings =
        entries.take(LOOKED_AT).map(|entry| entry.path()).filter(|path| path.join("manifest.json").exists());
    let mut found: Vec<(usize, String)> = recordings
        .map(|path| (strsim::levenshtein(&wanted, &name(&path)), path))
        .filter(|(far, path)| *far <= (wanted.len() / 3).max(1) || name(path).starts_with(&wanted))
        .map(|(far, path)| {
            let path = if folder.is_none() { path.file_name().unwrap_or_default().into() } else { path };
            (far, one_line(&path.to_string_lossy()))
        })
        .collect();
    found.sort();
    found.into_iter().take(MOST).map(|(_, path)| path).collect()
}
