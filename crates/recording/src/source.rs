//! Sources of kernel activity: the names of noise sources.

mod kinds;

use std::fmt;
use std::str::FromStr;

pub use kinds::{Level, Source, SourceKind};

impl Source {
    /// Writes its text without a formatter: a table has it as often as there are intervals.
    pub(crate) fn write_to(&self, text: &mut impl fmt::Write) -> fmt::Result {
        text.write_str(self.kind().name())?;
        if let Some(name) = self.name() {
            text.write_str(":")?;
            text.write_str(name)?;
        }
        Ok(())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind().name(), self.name()) {
            (kind, None) => f.pad(kind),
            (_, Some(_)) if f.width().is_none() && f.precision().is_none() => self.write_to(f),
            (kind, Some(name)) => f.pad(&format!("{kind}:{name}")),
        }
    }
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, name) = text.split_once(':').map_or((text, None), |(kind, name)| (kind, Some(name)));
        SourceKind::ALL
            .into_iter()
            .find(|one| one.name() == kind)
            .and_then(|kind| Self::new(kind, name))
            .ok_or_else(|| format!("`{text}` is not the name of a noise source"))
    }
}

#[cfg(test)]
mod tests;
