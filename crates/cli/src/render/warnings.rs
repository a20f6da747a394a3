//! Warnings as terminals show them, a line each.

use std::fmt::Display;

use crate::printer::one_line;

/// Their sentences, made harmless: names of recordings and hosts are others' words.
pub fn lines(warnings: &[impl Display]) -> String {
    warnings.iter().map(|warning| format!("warning: {}\n", one_line(&warning.to_string()))).collect()
}
