//! Discovery and tables, over real connections.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test stops at a surprise")]
#![allow(clippy::print_stderr, reason = "a test that is left out says so")]

mod connections;
mod fixture;
mod kubectl;
mod shapes;
