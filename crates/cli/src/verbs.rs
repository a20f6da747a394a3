//! One file per verb: each does one thing and reports what it did. Verbs do not import each other; shared steps are in [`crate::steps`].

pub mod advise;
pub mod bench;
pub mod bench_loop;
pub mod compare;
pub mod convert;
pub mod doctor;
pub mod generate_fleet;
pub mod generate_run;
pub mod goal;
pub mod predict;
pub mod record;
pub mod replay;
pub mod report;
pub mod serve_metrics;
pub mod show;
pub mod simulate;
pub mod study;
pub mod trace;
pub mod track;
pub mod tune;
pub mod watch;
pub mod welcome;
