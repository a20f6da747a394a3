//! One file a verb: each does one thing, and says what it did. None knows of another: what several do is in [`crate::steps`].

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
