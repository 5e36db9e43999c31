//! The configuration of `kubediff serve`.

mod commands;
mod mistakes;
mod seed;
mod server;
mod settings;
