//! `quell goal`: checks, converts, makes and lists schedules.

pub mod check;
mod convert;
mod list;
mod make;

pub use list::PatternList;
pub use make::build;

use crate::args::{Goal, GoalVerb};
use crate::outcome::Outcome;
use crate::printer::Printer;

/// Runs the requested verb.
pub fn run(args: &Goal, printer: Printer) -> anyhow::Result<Outcome> {
    match &args.verb {
        GoalVerb::Check(args) => check::run(args, printer),
        GoalVerb::Convert(args) => convert::run(args, printer),
        GoalVerb::Make(args) => make::run(args, printer),
        GoalVerb::List(args) => list::run(args, printer),
    }
}
