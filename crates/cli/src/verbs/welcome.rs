//! `quell` without a verb: prints the five most common commands.

use crate::outcome::Outcome;
use crate::printer::Printer;

const TEXT: &str = "\
quell measures operating-system noise on Linux nodes, names its sources, and predicts what it costs a parallel program.

  Is this node noisy, and by what?     quell study
  Who disturbs my program?             quell record -o job.quell -- ./program
                                       quell show job.quell --by source
  What will it do at 10,000 nodes?     quell predict node.quell --ranks 10000
                                       quell advise node.quell --ranks 10000
  Why is rank 37 late?                 quell trace -o run -- mpirun ./program
                                       quell track run
  Make this node quiet, and prove it   quell tune audit node.quell
                                       quell tune try ID --yes
  No node at hand?                     quell example example

`quell doctor` says what this machine permits, `quell help` lists every verb, `quell VERB --help` ends with examples.
";

/// Prints the commands.
pub fn run(printer: Printer) -> anyhow::Result<Outcome> {
    printer.result(TEXT)?;
    Ok(Outcome::Done)
}
