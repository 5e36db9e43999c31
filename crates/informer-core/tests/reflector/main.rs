//! The reflector and the store by script: what happens, and what is to come of it. Contract groups L, W and S.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at a surprise, in its helpers too"
)]

mod backwards;
mod list;
mod requests;
mod resume;
mod schema;
mod script;
mod streaming;
mod waits;
mod watch;
