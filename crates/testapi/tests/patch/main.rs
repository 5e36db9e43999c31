//! Patches, managed fields and server-side apply against what a real kube-apiserver answers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may stop at a surprise")]

mod recorded;
mod schemas;
