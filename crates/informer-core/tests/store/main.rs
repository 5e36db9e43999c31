//! The cache, through its public interface: contract clauses L10-L12, W11, D1-D3, D7, C1-C8, H9, H10, F7.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may stop at a surprise, in its helpers too, and says with which seed"
)]

mod clauses;
mod fixture;
mod indexes;
mod lists;
mod model;
mod random;
mod threads;
