//! `quell tune copy`: copies what `tune` reads of a machine.

use quell_request::Usage;
use quell_tune::copy::{Copied, copy};

use crate::args::TuneCopy;
use crate::outcome::Outcome;
use crate::printer::{Printer, one_line};
use crate::steps::audit::{catalogue_at, root};

/// Number of unread files that are named.
const NAMED: usize = 5;

/// Copies, and says what could not be read.
pub fn run(args: &TuneCopy, printer: Printer) -> anyhow::Result<Outcome> {
    let root = root(args.sysroot.as_deref())?;
    let catalogue = catalogue_at(&args.site, &root)?;
    let folder = &args.output;
    fs_err::create_dir_all(folder)?;
    if fs_err::read_dir(folder)?.next().is_some() {
        return Err(Usage(format!("{} is not empty: choose another folder", folder.display())).into());
    }
    let Copied { files, refused, unread } = copy(&root, &catalogue, folder)?;
    for (paths, what) in
        [(refused, "may not be read by this user, nor in the copy"), (unread, "could not be read")]
    {
        if !paths.is_empty() {
            let named: Vec<String> = paths.iter().take(NAMED).map(|path| one_line(path)).collect();
            let more = if paths.len() > NAMED { ", …" } else { "" };
            let files = if paths.len() == 1 { "file" } else { "files" };
            printer.notice(&format!("{} {files} {what}: {}{more}", paths.len(), named.join(", ")));
        }
    }
    printer.status(&format!(
        "copied {files} files to {0}; `quell tune audit --sysroot {0}` looks at them",
        folder.display()
    ));
    Ok(Outcome::Done)
}
