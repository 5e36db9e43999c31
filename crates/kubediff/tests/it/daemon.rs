//! `--daemon`: questions that are answered in the daemon's pod, through an API server's exec.

mod errors;
pub(crate) mod exec;
mod page;
mod places;
mod questions;
pub(crate) mod server;
