//! Summarizes a traced run, as text and as an exit code.

use quell_node::mpi::Used;

use super::archive::Made;
use super::folder::Folder;
use super::node::Nodes;
use super::wants_counters;
use crate::args::Trace;
use crate::printer::Printer;

/// Prints what the run produced and what is missing, and deletes temporary files. Returns the command's own exit code, or 1 if the command
/// succeeded but there is no archive.
pub fn report(
    args: &Trace,
    folder: &Folder,
    used: &Used,
    nodes: &Nodes,
    made: anyhow::Result<Made>,
    code: u8,
    printer: Printer,
) -> u8 {
    let shown = args.output.display();
    let made = match made {
        Ok(made) => made,
        Err(error) => {
            folder.clear(true);
            printer.error(&error.context(format!(
                "quell could not make an archive from the logs in {shown}/logs, and keeps them"
            )));
            return failed(code);
        }
    };
    made.missing.iter().for_each(|missing| printer.warn(missing));
    for (host, why) in nodes.unknown.iter().filter(|_| wants_counters(args)) {
        printer.warn(&format!("no counters of the kernel's noise on {host}: {}", why.trim()));
    }
    for host in &nodes.unfinished {
        printer.warn(&format!(
            "the recorder of {host} ended early: {shown}/{host}.quell holds the data up to then"
        ));
    }
    folder.clear(args.keep_logs || made.damaged);
    if made.damaged {
        printer.status(&format!("the logs are kept in {shown}/logs"));
    }
    let Some(archive) = &made.archive else {
        let why = unseen(args, used, &made);
        if code == 0 {
            printer.error(&anyhow::anyhow!("{why}"));
        } else {
            printer.error(&anyhow::anyhow!("the command ended with exit code {code} and left nothing to archive; its own messages may say why"));
            printer.status(&why);
        }
        return failed(code);
    };
    if made.calls == 0 {
        printer.error(&anyhow::anyhow!(
            "no MPI call but MPI_Init and MPI_Finalize was seen: other calls bypass the tracer, or the program makes none"
        ));
        return failed(code);
    }
    let archive = archive.strip_prefix(&folder.path).unwrap_or(archive);
    printer.status(&format!("{}: {shown}/{}", extent(&made), archive.display()));
    if code != 0 {
        printer.status(&format!(
            "the command ended with exit code {code}; the archive holds what it did until then"
        ));
    }
    printer.status(&format!("see what the noise did to it with `quell track {shown}`"));
    code
}

/// Prints what a run left behind, and returns the exit code.
pub fn recovered(args: &Trace, made: &Made, printer: Printer) -> u8 {
    made.missing.iter().for_each(|missing| printer.warn(missing));
    let shown = args.output.display();
    if made.archive.is_none() {
        printer.error(&anyhow::anyhow!("no rank left a log in {shown}/logs that can be read"));
        return 1;
    }
    printer.status(&format!("{}: {shown}/traces.otf2; the logs are kept in {shown}/logs", extent(made)));
    printer.status(&format!("see what the noise did to it with `quell track {shown}`"));
    0
}

/// The size of an archive, in words.
fn extent(made: &Made) -> String {
    let ranks = if made.ranks == 1 { "rank" } else { "ranks" };
    format!("{} {ranks}, {} events", made.ranks, made.events)
}

fn failed(code: u8) -> u8 {
    if code == 0 { 1 } else { code }
}

/// Why no MPI call was seen, if the reason can be found.
fn unseen(args: &Trace, used: &Used, made: &Made) -> String {
    let mpi = &used.wrapper;
    let tracer = format!("the tracer was built for {} {}", mpi.family, mpi.version);
    let tracer = tracer.trim_end();
    if let Some(linked) = used.linked.as_ref().filter(|_| used.doubts.is_empty() && made.ranks == 0) {
        return format!(
            "no MPI call was seen, though {} is linked with {}: {tracer}, and no process loaded it; check \
             that the launcher passes LD_PRELOAD and QUELL_TRACE on, and that every host sees {}",
            linked.program.display(),
            linked.library.display(),
            args.output.display()
        );
    }
    let why = if used.doubts.is_empty() {
        "its program may call none, be linked statically, run setuid, or use another MPI".to_owned()
    } else {
        used.doubts.join("; ")
    };
    format!(
        "no MPI call was seen of `{}`, so there is nothing to archive: {why}. {tracer}: if the program uses another one, name it with --mpi",
        args.command.join(" ")
    )
}
