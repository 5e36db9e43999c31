//! The configuration of `kubediff serve`.

mod arriqaaq;
mod clusters;
mod commands;
mod mistakes;
mod server;
mod settings;
