//! Deliveries by script, and under random sinks against a naive model.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test may stop at a surprise, its helpers too; its numbers are small"
)]

mod random;
mod scripts;
mod stage;
