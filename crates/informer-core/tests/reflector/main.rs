//! The reflector and the store by script: what happens, and what is to come of it. Contract groups L, W and S.

mod list;
mod script;
mod streaming;
mod watch;
