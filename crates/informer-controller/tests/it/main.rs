//! The controller against `testapi`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod leading;
mod loops;
mod own_writes;
mod review;
mod support;
