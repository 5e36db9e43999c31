//! Issue 12: the commands that answer from a history file, as a user runs them.

mod blame;
mod diff;
mod events;
pub(crate) mod fleet;
mod log;
mod net;
pub(crate) mod run;
mod scrub;
pub(crate) mod shop;
mod states;
mod truth;
pub(crate) mod world;
