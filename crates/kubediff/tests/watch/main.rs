//! `kubediff watch` as a user runs it: the program, against a real control plane.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at a surprise, in its helpers too"
)]

mod arguments;
mod audit;
mod behind;
mod cluster;
mod contexts;
mod daemon;
mod database;
mod demo;
mod history;
mod kills;
mod known;
mod local;
// The server that the delivery is tested with.
#[path = "../../../kubediff-delivery/tests/it/nats.rs"]
#[expect(
    dead_code,
    clippy::cast_possible_truncation,
    reason = "a part of it is of use here; a test has few messages"
)]
mod nats;
mod network;
mod outages;
mod past;
mod recipes;
mod record;
mod rights;
mod rotation;
mod session;
mod shop;
mod slow;
mod stories;
mod story;
mod streams;
mod takeover;
mod tour;
mod viewers;
