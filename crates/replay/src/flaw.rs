//! Why a file is no schedule.

/// Why a file is no schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Shorter than it says, or than a head.
    Torn,
    /// Not made by quell.
    Magic,
    /// Made by another version of quell.
    Version,
    /// Changed after it was written.
    Checksum,
    /// A number in the head that no schedule has.
    Head,
    /// A group or a track that points nowhere.
    Table,
    /// Starts that are no clock.
    Track,
    /// Noise with which a program would not get on.
    Starves,
}

impl Flaw {
    /// The reason in words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Torn => "it is cut off",
            Self::Magic => "it is no schedule of quell's",
            Self::Version => "it is of another version of quell",
            Self::Checksum => "it was changed or damaged after it was written",
            Self::Head => "a number in its head is out of bounds",
            Self::Table => "a table in it points outside",
            Self::Track => "a trace in it does not go forward",
            Self::Starves => {
                "its noise comes too often, lasts too long or takes too much for timers and signals"
            }
        }
    }
}
