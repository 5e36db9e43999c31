//! Errors with exit codes, and running other programs, for xtask and the benchmarks' harness.

mod error;
pub mod process;

pub use error::Error;
