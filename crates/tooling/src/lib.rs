//! Errors with exit codes, running other programs, and their CPU time, for xtask and the benchmarks' harness.

pub mod cpu;
mod error;
pub mod process;

pub use error::Error;
