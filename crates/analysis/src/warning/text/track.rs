//! The sentence of each warning of an archive.

use std::fmt::{Display, Formatter, Result};

use crate::warning::track::{ArchiveWarning, Collective, Envelope, Location, UndefinedName};

impl Display for ArchiveWarning {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::BreaksOff { location, at_ns, damage } => {
                write!(f, "{location} breaks off at {}: {damage}", Seconds(*at_ns))
            }
            Self::LeavesUnentered { location, region } => {
                write!(f, "{location} leaves {region} without having entered it")
            }
            Self::LeavesOpen { location, region, open } => {
                write!(f, "{location} leaves {region} before {open} within it")
            }
            Self::CounterBackwards { location, source, to_ns } => {
                write!(f, "{location}: the counter of {source} goes back to {to_ns} ns")
            }
            Self::ClockBackwards { location, by_ns, at_ns } => {
                write!(f, "{location}: the clock goes back by {by_ns} ns at {}", Seconds(*at_ns))
            }
            Self::EndsBeforeCause { location, at_ns, by_ns } => write!(
                f,
                "{location} ends a call at {}, {by_ns} ns before what it waited for: the clocks disagree",
                Seconds(*at_ns)
            ),
            Self::Undefined { location, what, at_ns } => {
                let what = match what {
                    UndefinedName::NoiseSource => "a noise source that the archive does not define",
                    UndefinedName::Peer => "a rank or communicator that the archive does not define",
                    UndefinedName::Communicator => "a communicator that it is not a member of",
                };
                write!(f, "{location} refers at {} to {what}", Seconds(*at_ns))
            }
            Self::NeverSent { location, at_ns, message } => write!(
                f,
                "{location} receives at {} a message that was never sent: {message}",
                Seconds(*at_ns)
            ),
            Self::NeverReceived { at_ns, message } => {
                write!(f, "a message was sent at {} and never received: {message}", Seconds(*at_ns))
            }
            Self::RanksMissing {
                collective: Collective { number, communicator, entered_ns },
                operation,
                ranks,
                more,
            } => {
                let name = operation.as_deref().unwrap_or("a collective");
                let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
                let listed = ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
                let entered = Seconds(*entered_ns);
                write!(
                    f,
                    "{name} number {number} on {communicator}, last entered at {entered}, lacks {noun} {listed}"
                )?;
                if *more > 0 { write!(f, " and {more} more") } else { Ok(()) }
            }
            Self::NotLeft { collective: Collective { number, communicator, entered_ns } } => write!(
                f,
                "a collective (number {number}) on {communicator}, last entered at {}, was not left by all",
                Seconds(*entered_ns)
            ),
            Self::RanksDisagree { collective: Collective { number, communicator, entered_ns } } => write!(
                f,
                "ranks do not agree what collective {number} on {communicator} is, entered last at {}",
                Seconds(*entered_ns)
            ),
            Self::EndsWithin { location, at_ns, region } => {
                write!(f, "{location} ends at {} within {region}", Seconds(*at_ns))
            }
            Self::WithoutFinalize { location, at_ns } => {
                write!(f, "{location} ends at {} without MPI_Finalize", Seconds(*at_ns))
            }
        }
    }
}

impl Display for Location {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.thread {
            Some([rank, 0]) => write!(f, "rank {rank}"),
            Some([rank, thread]) => write!(f, "rank {rank} thread {thread}"),
            None => write!(f, "location {}", self.number),
        }
    }
}

impl Display for Envelope {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { from, to, tag, communicator } = self;
        write!(f, "rank {from} to rank {to}, tag {tag}, {communicator}")
    }
}

/// A time in ns, displayed in seconds.
struct Seconds(i64);

impl Display for Seconds {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{:.9} s", self.0 as f64 * 1e-9)
    }
}
