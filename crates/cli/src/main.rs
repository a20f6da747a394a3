//! The `quell` command.

mod args;
mod dispatch;
mod generate;
mod html;
mod kernel_side;
mod outcome;
mod plan;
mod printer;
mod progress;
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
    match std::env::args_os().len() {
        0 | 1 => dispatch::welcome(),
        _ => dispatch::run(args::Args::parse()),
    }
}
