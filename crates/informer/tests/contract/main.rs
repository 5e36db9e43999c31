//! The promises of the crate (docs/CONTRACT.md), against `testapi` without sockets, with faults by the test's script.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at a surprise, in its helpers too"
)]

mod blocked;
mod cache;
mod deltas;
mod discovery;
mod factories;
mod fire;
mod guests;
mod handlers;
mod leaving;
mod lifetimes;
mod listers;
mod logs;
mod metrics;
mod namespaces;
mod outages;
mod requests;
mod resync;
mod saving;
mod schemas;
mod selections;
mod server;
mod shares;
mod stopping;
mod stories;
mod stuck;
mod support;
mod transforms;
