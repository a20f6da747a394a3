//! The live view: what is shown of a frame, on a terminal or in a pipe, and what keys do.

mod board;
mod columns;
mod meter;
mod panes;
mod plain;
mod screen;
#[cfg(test)]
mod tests;
mod tty;
mod view;

pub use meter::Meter;
pub use plain::{block, summary};
pub use tty::Tty;
pub use view::View;
