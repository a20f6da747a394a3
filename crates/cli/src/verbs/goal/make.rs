//! `quell goal make`: makes a schedule from a named pattern.

use quell_sim::goal::{Format, Schedule, ScheduleBuilder};
use quell_sim::loggops::{Program as _, Shape};
use quell_sim::pattern::{AnyPattern, Steps, UnrollTo, unroll};

use crate::args::GoalMake;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::steps::schedule_file::{bytes, form, keep, size, write};
use quell_request::pattern::{self, Named};

/// Maximum memory of a schedule here, in bytes. Its file is three to eight times that size.
const MOST_MEMORY: u64 = 2 << 30;

/// Unrolls the pattern and writes it.
pub fn run(args: &GoalMake, printer: Printer) -> anyhow::Result<Outcome> {
    let format = form(&args.target)?;
    keep(&args.target)?;
    let named = pattern::from_args(&args.pattern, &args.parameters)?;
    let count = count(&named)?;
    let about = bytes(count.file_bytes(format));
    printer.status(&format!(
        "{} operations and {} dependencies: about {about}",
        count.operations, count.dependencies
    ));
    let schedule = build(&named.steps)?;
    let written = write(&schedule, format, &args.target.output)?;
    printer.status(&format!(
        "{} holds {}: {}",
        args.target.output.display(),
        size(&schedule),
        bytes(written)
    ));
    Ok(Outcome::Done)
}

fn count(named: &Named) -> anyhow::Result<Count> {
    let mut count = Count { operations: 0, dependencies: 0, ranks: u64::from(named.steps.ranks()) };
    // Totals that the pattern knows in advance need not be counted.
    let known = named.steps.totals().map_or(u64::MAX, |(operations, _)| operations);
    let fits = Count { operations: known, ..count }.fits() && unroll(&named.steps, &mut count).is_ok();
    if fits {
        return Ok(count);
    }
    let operations = if known == u64::MAX {
        "more operations than can be counted".into()
    } else {
        format!("{known} operations")
    };
    anyhow::bail!(
        "this pattern has {operations}, which with their dependencies need more than the {} that a schedule may have: give \
         fewer ranks or --iterations, or play it without a file (`quell simulate --pattern {}`)",
        bytes(MOST_MEMORY),
        named.name
    )
}

/// The schedule of a pattern.
pub fn build(steps: &Steps<AnyPattern>) -> anyhow::Result<Schedule> {
    let mut builder = Building(ScheduleBuilder::new(steps.ranks()));
    match unroll(steps, &mut builder) {
        Ok(()) => Ok(builder.0.finish()?),
        Err(never) => match never {},
    }
}

/// The size of a schedule.
#[derive(Clone, Copy)]
struct Count {
    operations: u64,
    dependencies: u64,
    ranks: u64,
}

/// The schedule would be too large.
struct TooLarge;

impl Count {
    /// Whether it fits: 12 bytes per operation, 4 per dependency, 16 per rank.
    fn fits(self) -> bool {
        let parts = [(self.operations, 12), (self.dependencies, 4), (self.ranks, 16)];
        let memory = parts.iter().fold(0u64, |sum, (n, bytes)| sum.saturating_add(n.saturating_mul(*bytes)));
        memory <= MOST_MEMORY
    }

    /// The approximate size of the file, in bytes.
    fn file_bytes(self, format: Format) -> u64 {
        match format {
            // `l12: send 8b to 1234 tag 0`, `l12 requires l11`.
            Format::Text => self.operations * 30 + self.dependencies * 20 + self.ranks * 12,
            // 39 bytes per operation and 4 per root; a rank has one or two roots.
            Format::Binary => self.operations * 39 + self.dependencies * 4 + self.ranks * 30,
        }
    }

    fn checked(self) -> Result<(), TooLarge> {
        if self.fits() { Ok(()) } else { Err(TooLarge) }
    }
}

impl UnrollTo for Count {
    type Error = TooLarge;

    fn begin_rank(&mut self, _rank: u32) -> Result<(), TooLarge> {
        Ok(())
    }

    fn op(&mut self, _shape: &Shape, _peer: u32) -> Result<(), TooLarge> {
        self.operations += 1;
        Ok(())
    }

    fn requires(&mut self, _op: u32, _on: u32) -> Result<(), TooLarge> {
        self.dependencies += 1;
        // Dependencies between two large steps can outnumber their operations by far, so the limit is checked before the end of the rank.
        if self.dependencies.is_multiple_of(4_096) { self.checked() } else { Ok(()) }
    }

    fn end_rank(&mut self) -> Result<(), TooLarge> {
        self.checked()
    }
}

/// Adds a pattern's operations to a schedule.
struct Building(ScheduleBuilder);

impl UnrollTo for Building {
    type Error = std::convert::Infallible;

    fn begin_rank(&mut self, _rank: u32) -> Result<(), Self::Error> {
        self.0.begin_rank();
        Ok(())
    }

    fn op(&mut self, shape: &Shape, peer: u32) -> Result<(), Self::Error> {
        self.0.op(*shape, peer);
        Ok(())
    }

    fn requires(&mut self, op: u32, on: u32) -> Result<(), Self::Error> {
        self.0.requires(op, on);
        Ok(())
    }

    fn end_rank(&mut self) -> Result<(), Self::Error> {
        self.0.end_rank();
        Ok(())
    }
}
