//! From the bytes of an answer to the cache: contract clauses L10, L14, W1, W8, W17.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at a surprise, in its helpers too"
)]

mod lists;
mod rig;
mod shares;
mod watch;
