//! The path of a recording: it may contain the host's name, and each copy of quell that a launcher starts has its own.

use std::path::{Path, PathBuf};

use quell_replay::Launched;

use quell_request::Usage;

use super::recording_of_now;

/// Where this copy of quell records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Into this folder.
    To(PathBuf),
    /// Nowhere: another copy on this host records it.
    Nowhere,
}

/// A host's name with only characters that are safe in a file name.
pub fn file_name(host: &str) -> String {
    let name: String =
        host.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
    if name.trim_matches('.').is_empty() { "node".into() } else { name }
}

/// Where to record for the argument of `-o`. Of several copies on one host, the first records the host; copies that follow a command have a
/// recording each.
pub fn for_recording(
    output: Option<&Path>,
    host: &str,
    launched: Option<Launched>,
    follows: bool,
) -> Result<Place, Usage> {
    let (host, rank) = (file_name(host), launched.map_or(0, |launched| launched.rank));
    let Some(launched) = launched.filter(Launched::among_several) else {
        return Ok(Place::To(output.map_or_else(recording_of_now, |path| fill(path, &host, rank))));
    };
    let Some(output) = output else {
        return Err(Usage(
            "several copies of quell run: name a folder for the recordings of all hosts with -o DIR".into(),
        ));
    };
    if !follows && launched.local_rank.is_some_and(|local| local > 0) {
        return Ok(Place::Nowhere);
    }
    let path = fill(output, &host, rank);
    if path != output {
        return Ok(Place::To(path));
    }
    if output.extension().is_some_and(|extension| extension == "quell") {
        return Err(Usage(format!(
            "several copies of quell run, and {} is the name of one recording: give a folder for all, or put the host into the name (%h)",
            output.display()
        )));
    }
    let name = if follows { format!("{host}-{rank:04}.quell") } else { format!("{host}.quell") };
    Ok(Place::To(output.join(name)))
}

/// Replaces `%h` by the host and `%r` by the rank.
fn fill(path: &Path, host: &str, rank: u32) -> PathBuf {
    // A path that is not UTF-8 is used unchanged, without placeholders.
    path.to_str().map_or_else(
        || path.to_owned(),
        |text| text.replace("%h", host).replace("%r", &rank.to_string()).into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(rank: u32, local_rank: u32) -> Option<Launched> {
        Some(Launched { rank, size: Some(4), local_rank: Some(local_rank) })
    }

    fn place(output: &str, launched: Option<Launched>, follows: bool) -> Option<String> {
        match for_recording(Some(Path::new(output)), "n17", launched, follows) {
            Ok(Place::To(path)) => Some(path.display().to_string()),
            Ok(Place::Nowhere) => Some("nowhere".into()),
            Err(_) => None,
        }
    }

    #[test]
    fn alone_the_name_is_taken_as_it_is() {
        assert_eq!(place("a.quell", None, false).as_deref(), Some("a.quell"));
        assert_eq!(place("a-%h.quell", None, false).as_deref(), Some("a-n17.quell"));
        let one = Some(Launched { rank: 0, size: Some(1), local_rank: Some(0) });
        assert_eq!(place("runs", one, false).as_deref(), Some("runs"));
    }

    #[test]
    fn of_several_each_host_has_one() {
        assert_eq!(place("runs", copy(2, 0), false).as_deref(), Some("runs/n17.quell"));
        assert_eq!(place("runs", copy(3, 1), false).as_deref(), Some("nowhere"));
        assert_eq!(place("%h/a.quell", copy(2, 0), false).as_deref(), Some("n17/a.quell"));
        assert_eq!(place("a.quell", copy(2, 0), false), None);
        assert!(for_recording(None, "n17", copy(0, 0), false).is_err());
    }

    #[test]
    fn commands_have_one_each() {
        assert_eq!(place("runs", copy(3, 1), true).as_deref(), Some("runs/n17-0003.quell"));
        assert_eq!(place("%h-%r.quell", copy(3, 1), true).as_deref(), Some("n17-3.quell"));
    }

    #[test]
    fn hosts_with_odd_names_stay_in_the_folder() {
        assert_eq!(file_name("../x y"), ".._x_y");
        assert_eq!(file_name(".."), "node");
    }
}
