//! Objects as protobuf: as Kubernetes' own encoder writes them, and in requests and answers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test stops at a surprise")]

mod recorded;
mod writes;
