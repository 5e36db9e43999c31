//! The history through its public interface.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at a surprise, its helpers too")]

mod damage;
mod documents;
mod events;
mod file;
mod full;
mod kill;
mod model;
mod questions;
mod random;
mod scrub;
mod sight;
mod store;
mod stories;
mod users;
mod world;
