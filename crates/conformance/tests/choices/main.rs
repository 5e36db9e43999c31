//! The contract, whatever is chosen: the same clauses against the embedded server with everything that is not the default, one
//! HTTP/2 connection for all requests of a factory, answers in JSON, objects kept as the bytes that came.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test may stop at a surprise, its helpers too"
)]

#[path = "../clauses/mod.rs"]
mod clauses;
mod servers;

/// The kind of server that the clauses are shown against.
const SERVER: conformance::Kind = conformance::Kind::TestApiOtherwise;
