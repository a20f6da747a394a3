//! The `quell` command.

mod args;
mod commands;
mod html;
mod kernel_side;
mod noise_file;
mod plan;
mod plots;
mod printer;
mod progress;
mod sweep;
mod terminal;
mod terminal_advise;
mod terminal_bench;
mod terminal_compare;
mod terminal_emulate;
mod terminal_fleet;
mod terminal_fwq;
mod terminal_hosts;
mod terminal_loggp;
mod terminal_replay;
mod terminal_simulate;
mod terminal_sources;
mod terminal_track;
mod terminal_tune;
mod terminal_tune_try;
mod terminal_validate;
mod watch;
mod whatif;
mod whole_file;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    silence_decoders();
    match std::env::args_os().len() {
        0 | 1 => commands::welcome(),
        _ => commands::run(args::Args::parse()),
    }
}

/// Decoders of Arrow and Parquet panic on some damaged files. `quell_recording` turns that into an error; the panic's
/// own message would only confuse.
fn silence_decoders() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let foreign = |file: &str| file.contains("/arrow-") || file.contains("/parquet-");
        if !panic.location().is_some_and(|location| foreign(location.file())) {
            default(panic);
        }
    }));
}
