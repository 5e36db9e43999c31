//! Issue 12: the commands that answer from a history file, as a user runs them.

mod log;
mod net;
mod run;
mod shop;
mod states;
mod world;
