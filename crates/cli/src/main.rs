//! The `quell` command.

mod args;
mod commands;
mod html;
mod plan;
mod plots;
mod printer;
mod progress;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    commands::run(args::Args::parse())
}
