//! Renders warnings for terminals, one per line.

use std::fmt::Display;

use crate::printer::one_line;

/// The text of warnings, with control characters removed: names of recordings and hosts come from outside quell.
pub fn lines(warnings: &[impl Display]) -> String {
    warnings.iter().map(|warning| format!("warning: {}\n", one_line(&warning.to_string()))).collect()
}
