use crate::args::Replay;
use crate::commands::Outcome;
use crate::printer::Printer;

pub fn run(_args: &Replay, _printer: Printer) -> anyhow::Result<Outcome> {
    anyhow::bail!("not built yet")
}
