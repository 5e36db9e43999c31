//! `--daemon`: questions that are answered in the daemon's pod, through an API server's exec.

mod errors;
mod exec;
mod page;
mod places;
mod questions;
mod server;
