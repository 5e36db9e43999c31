//! The controller against `testapi`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod clusters;
mod coming_from;
mod debounce;
mod ending;
mod events;
mod finalizers;
mod late;
mod leading;
mod loops;
mod names;
mod own_writes;
mod permissions;
mod predicates;
mod programs;
mod scripted;
mod statuses;
mod storms;
mod support;
mod telling;
mod traps;
mod waiting;
mod wireless;
mod writes;
