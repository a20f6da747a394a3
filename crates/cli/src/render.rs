//! Renders documents as text for a terminal: one file per document. Nothing here decides or computes; every verb may use it.

pub mod advise;
pub mod bench;
pub mod compare;
pub mod emulate;
pub mod fleet;
pub mod formats;
pub mod fwq;
pub mod loggp;
pub mod plots;
pub mod predict;
pub mod replay;
pub mod rows;
pub mod show;
pub mod simulate;
pub mod sources;
pub mod table;
pub mod track;
pub mod tune;
pub mod tune_try;
pub mod validate;
pub mod warnings;
