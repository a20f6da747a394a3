//! What makes a trace's detours happen on this machine.

pub mod phases;
