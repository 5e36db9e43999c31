//! The controller against `testapi`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod events;
mod finalizers;
mod from_client_go;
mod leading;
mod loops;
mod own_writes;
mod permissions;
mod scripted;
mod statuses;
mod support;
mod traps;
mod waiting;
