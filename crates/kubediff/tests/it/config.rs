//! The configuration of `kubediff serve`.

mod arriqaaq;
mod commands;
mod mistakes;
mod server;
mod settings;
