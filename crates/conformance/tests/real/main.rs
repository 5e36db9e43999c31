//! The contract, shown against a real kube-apiserver: that servers are as the scripted tests say. The tests share one
//! control plane.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test may stop at a surprise, its helpers too"
)]

#[path = "../clauses/mod.rs"]
mod clauses;
mod controllers;

/// The kind of server that the clauses are shown against.
const SERVER: conformance::Kind = conformance::Kind::Real;
