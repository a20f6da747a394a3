//! Why a file is not a valid schedule.

/// Why a file is not a valid schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// Shorter than its head says, or than a head.
    Torn,
    /// Not written by quell.
    Magic,
    /// Written by another version of quell.
    Version,
    /// Changed after it was written.
    Checksum,
    /// The head holds a number that is not valid.
    Head,
    /// A group or a track points outside of its table.
    Table,
    /// Starts that do not form a progress clock.
    ProgressClockView,
    /// Noise under which a program would make no progress.
    Starves,
}

impl ScheduleError {
    /// The reason as text.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Torn => "it is cut off",
            Self::Magic => "it is not a schedule of quell's",
            Self::Version => "another version of quell wrote it",
            Self::Checksum => "it was changed or damaged after it was written",
            Self::Head => "a number in its header is out of bounds",
            Self::Table => "a table in it points outside",
            Self::ProgressClockView => "the times of a trace in it do not increase",
            Self::Starves => {
                "its noise comes too often, lasts too long or takes too much for a program to go on"
            }
        }
    }
}
