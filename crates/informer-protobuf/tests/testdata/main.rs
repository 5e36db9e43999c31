//! The test data that Kubernetes' modules ship: each kind with every field set, as JSON and as protobuf, of this
//! version and of earlier ones. Go locates the data; without Go these tests are skipped, like those against a real
//! server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may stop at a surprise, in its helpers too"
)]

mod damaged;
mod files;
mod partial;
mod typed;
mod values;
