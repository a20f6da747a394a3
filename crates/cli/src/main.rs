//! The `quell` command.

mod args;
mod confine;
mod dispatch;
mod example;
mod generate;
mod html;
mod kernel_side;
mod memory;
mod outcome;
mod plan;
mod printer;
mod progress;
mod prose;
mod render;
mod share;
mod signals;
mod steps;
mod suggestions;
mod sweep;
mod values;
mod verbs;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    quell_recording::silence_decoders();
    memory::report_panics();
    let arguments: Vec<_> = std::env::args_os().collect();
    if arguments.len() < 2 {
        return dispatch::welcome();
    }
    match args::Args::try_parse_from(&arguments) {
        Ok(args) => dispatch::run(args),
        Err(error) => printer::refuse(&suggestions::explained(error), &arguments),
    }
}
