//! The engine as a machine: inputs in, commands out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at a surprise, in its helpers too"
)]

mod dispatching;
mod following;
mod obligations;
mod play;
mod steps;
