//! Steps that several verbs share: recording, predicting, advising, tracking, auditing the machine, each with its progress on the terminal.

pub mod advise;
pub mod archive_page;
pub mod audit;
pub mod export_files;
pub mod measured_networks;
pub mod mpi_cache;
pub mod page;
pub mod predict;
pub mod record;
pub mod remedies;
pub mod schedule_file;
pub mod track;
