//! `kubediff watch` as a user runs it: the program, against a real control plane.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at a surprise, in its helpers too"
)]

mod arguments;
mod behind;
mod cluster;
mod daemon;
mod demo;
mod history;
mod kills;
mod known;
mod local;
mod outages;
mod record;
mod rights;
mod rotation;
mod session;
mod shop;
mod slow;
mod stories;
mod story;
mod streams;
mod viewers;
