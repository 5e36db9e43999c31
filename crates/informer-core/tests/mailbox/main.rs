//! The mailboxes, against what subscriptions are promised.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at a surprise, in its helpers too"
)]

mod clauses;
mod random;
