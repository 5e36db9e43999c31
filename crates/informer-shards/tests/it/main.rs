//! Q9: members of shards in one process, against `testapi`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod joining;
mod support;
mod troubles;
