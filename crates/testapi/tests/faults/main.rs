//! The server around the API, through HTTP: how it starts and restarts, who may ask, and everything that can go wrong.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that stops at a surprise has found one"
)]

mod client;
mod connections;
mod content;
mod foreign;
mod program;
mod protobuf;
mod random;
mod refusals;
mod scripts;
mod server;
mod visibility;
