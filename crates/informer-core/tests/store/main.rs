//! The cache, through its public interface: contract clauses L10-L12, W11, D1-D3, D7, C1-C9, H9, H10, F7.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at a surprise, in its helpers too"
)]

mod clauses;
#[path = "../../examples/objects_in_a_file/storage.rs"]
mod file;
mod indexes;
mod lists;
mod random;
mod threads;
