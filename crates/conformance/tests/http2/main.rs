//! The contract over HTTP/2: the same clauses against the embedded server, with one connection for all requests of a
//! factory.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test may stop at a surprise, its helpers too"
)]

#[path = "../clauses/mod.rs"]
mod clauses;
mod servers;

/// What the clauses are shown against.
const SERVER: conformance::Kind = conformance::Kind::TestApiOverHttp2;
