//! Suggestions for a recording that does not exist, and for a command line that is refused.

use std::path::Path;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use quell_recording::Error;

use crate::args::Args;
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

/// A refused command line, with suggestions that help: no names of hidden commands, and where the command to run goes.
pub fn explained(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::Strings(near)) = error.remove(ContextKind::SuggestedSubcommand) {
        let args = Args::command();
        let is_hidden = |name: &String| args.find_subcommand(name).is_some_and(clap::Command::is_hide_set);
        let near: Vec<String> = near.into_iter().filter(|name| !is_hidden(name)).collect();
        if !near.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(near));
        }
    }
    let tip = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => tip(&error, argument),
        _ => None,
    };
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// What may have been meant by a refused argument.
fn tip(error: &clap::Error, argument: &str) -> Option<String> {
    let runs = |usage: &ContextValue| usage.to_string().contains("-- <CMD>");
    match error.kind() {
        ErrorKind::UnknownArgument if !argument.starts_with('-') => {
            let takes_command = error.get(ContextKind::Usage).is_some_and(runs);
            takes_command
                .then(|| format!("to run a command, put it behind `--`: `-- {}`", one_line(argument)))
        }
        // Other verbs write to `-o FILE`.
        ErrorKind::ValueValidation if argument.starts_with("--overhead <") => Some(
            "`-o` is LogGOPSim's o here; the result goes to stdout, and with `--json` as a document".into(),
        ),
        _ => None,
    }
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
