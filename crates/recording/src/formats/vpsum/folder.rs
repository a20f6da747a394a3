//! A folder of vpsum's files, one per rank.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{OfRank, content, rank_of};
use crate::Error;
use crate::formats::content::Imported;
use crate::formats::text_of;
use crate::whole_file;

/// Reads all files of the folder except hidden ones; `is_vpsum` returns whether a file's text is one of vpsum's.
pub(in crate::formats) fn read_folder(
    folder: &Path,
    is_vpsum: impl Fn(&str) -> Result<bool, String>,
) -> Result<Imported, Error> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && !entry.file_name().to_string_lossy().starts_with('.') {
            paths.push(entry.path());
        }
    }
    if paths.is_empty() {
        return Err(Error::not_a_recording(folder, "it holds no manifest.json, and no files of vpsum's"));
    }
    paths.sort();
    let mut files: BTreeMap<u32, OfRank> = BTreeMap::new();
    for path in paths {
        let (rank, file) = read(&path, &is_vpsum)?;
        if files.insert(rank, file).is_some() {
            return Err(Error::malformed(
                &path,
                format!("it is of rank {rank}, as another file of the folder is"),
            ));
        }
    }
    let files: Vec<(u32, OfRank)> = files.into_iter().collect();
    content(&files).finish(folder).map_err(|reason| Error::malformed(folder, reason))
}

fn read(path: &Path, is_vpsum: &impl Fn(&str) -> Result<bool, String>) -> Result<(u32, OfRank), Error> {
    let malformed = |reason: String| Error::malformed(path, reason);
    let bytes = whole_file::read(path, whole_file::MOST_BYTES)?;
    let text = text_of(&bytes).map_err(malformed)?;
    if !is_vpsum(text).map_err(malformed)? {
        return Err(malformed(
            "it is no file of vpsum's; of a folder all files are to be those of one run, a rank each".into(),
        ));
    }
    let file = OfRank::parse(text).map_err(malformed)?;
    let rank = rank_of(&file, path);
    let none = || "neither the file nor its name (as in `NAME.3`) tells the rank".to_owned();
    Ok((rank.ok_or_else(|| malformed(none()))?, file))
}
