//! The `quell` command.

mod args;
mod commands;
mod html;
mod kernel_side;
mod plan;
mod plots;
mod printer;
mod progress;
mod signals;
mod sweep;
mod table;
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
mod whole_file;

use std::process::ExitCode;

use clap::Parser as _;
// Files with noise are the same for every verb.

fn main() -> ExitCode {
    quell_recording::silence_decoders();
    match std::env::args_os().len() {
        0 | 1 => commands::welcome(),
        _ => commands::run(args::Args::parse()),
    }
}
