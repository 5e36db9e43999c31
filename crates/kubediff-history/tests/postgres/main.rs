//! The history in PostgreSQL, through its public interface: the tests of histories in files, and some of its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at a surprise, its helpers too")]

mod archive;
#[path = "../it/damage.rs"]
mod damage;
#[path = "../it/documents.rs"]
mod documents;
#[path = "../it/events.rs"]
mod events;
mod faults;
mod full;
#[path = "../it/model.rs"]
mod model;
mod network;
#[path = "../it/questions.rs"]
mod questions;
#[path = "../it/random.rs"]
mod random;
#[path = "../it/scrub.rs"]
mod scrub;
#[path = "../it/sight.rs"]
mod sight;
mod store;
#[path = "../it/stories.rs"]
mod stories;
mod tls;
#[path = "../it/users.rs"]
mod users;
#[path = "../it/world.rs"]
mod world;
