//! The options that change a node's noise from what was recorded.

use clap::Args as ClapArgs;
use quell_recording::Cpu;

use quell_analysis::whatif::SourceSelector;

/// Changes of the noise. They are applied in a fixed order: leave, without, only, stagger, align, scaled, on-cpu, coschedule. SOURCE is a
/// source (`tick`, `steal`, `unattributed`), a kind and a regular expression (`task:^kworker`, `irq:nvme`, `timer:CALLBACK`,
/// `work:FUNCTION`), or the name of a model's component.
#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "What if (each may be repeated)")]
pub struct WhatIfArgs {
    /// Leave the first N CPUs of each node to the system: ranks run on the others, with the noise of those.
    #[arg(long, value_name = "N")]
    pub leave: Option<usize>,
    /// Remove the source: `tick`, `steal`, `unattributed`, or a kind with a regular expression, as in `task:^kworker`, `irq:nvme`,
    /// `timer:CALLBACK` or `work:FUNCTION`.
    #[arg(long, value_name = "SOURCE")]
    pub without: Vec<SourceSelector>,
    /// Remove all other sources.
    #[arg(long, value_name = "SOURCE")]
    pub only: Vec<SourceSelector>,
    /// Scale the source's duration by a factor, as in `tick=0.5`.
    #[arg(long = "scaled", value_name = "SOURCE=FACTOR", value_parser = scaled)]
    pub scaled: Vec<(SourceSelector, f64)>,
    /// Move the source to this CPU from all CPUs of the node, as in `task:ksmd=0`.
    #[arg(long, value_name = "SOURCE=CPU", value_parser = placed)]
    pub on_cpu: Vec<(SourceSelector, Cpu)>,
    /// Spread the source evenly over the CPUs of a node, so that it never strikes two of them at once.
    #[arg(long, value_name = "SOURCE")]
    pub stagger: Vec<SourceSelector>,
    /// Make the source strike all CPUs of a node at the same time.
    #[arg(long, value_name = "SOURCE")]
    pub align: Vec<SourceSelector>,
    /// Make the source strike all nodes at the same time.
    #[arg(long, value_name = "SOURCE")]
    pub coschedule: Vec<SourceSelector>,
}

impl WhatIfArgs {
    /// Whether any of these options was given.
    pub fn is_given(&self) -> bool {
        let lists = [&self.without, &self.only, &self.stagger, &self.align, &self.coschedule];
        let one_by_one = self.scaled.len() + self.on_cpu.len();
        self.leave.is_some() || one_by_one > 0 || lists.iter().any(|list| !list.is_empty())
    }
}

/// Splits at the last `=`, since a regular expression may contain one.
fn halves(text: &str) -> Result<(SourceSelector, &str), String> {
    let (which, value) = text.rsplit_once('=').ok_or_else(|| format!("`{text}` is not SOURCE=VALUE"))?;
    Ok((which.parse()?, value))
}

fn scaled(text: &str) -> Result<(SourceSelector, f64), String> {
    let (which, factor) = halves(text)?;
    match factor.parse() {
        Ok(factor) if (0.0..=1e6).contains(&factor) => Ok((which, factor)),
        _ => Err(format!("`{factor}` is no factor: give a number from 0 to 1000000")),
    }
}

fn placed(text: &str) -> Result<(SourceSelector, Cpu), String> {
    let (which, cpu) = halves(text)?;
    cpu.parse().map(|cpu| (which, Cpu(cpu))).map_err(|_| format!("`{cpu}` is no number of a CPU"))
}
