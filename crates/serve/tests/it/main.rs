//! Requests for a collection, answered as the real server does.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test stops at a surprise")]

mod client;
mod forms;
mod gets;
mod lazy;
mod lists;
mod model;
mod pages;
mod protobuf;
mod random;
mod refusals;
mod selectors;
mod shards;
mod watches;
