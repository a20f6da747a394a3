//! What the benchmarks of `quell bench` found, from the files of their ranks.

pub mod loggp;
