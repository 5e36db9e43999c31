//! What xtask and the benchmarks' harness share: errors with exit codes, and running other programs.

mod error;
pub mod process;

pub use error::Error;
