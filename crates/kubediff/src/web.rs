//! The page: `kubediff ui` answers a browser from a history, and programs as JSON. Nothing here changes anything.

mod address;
mod args;
mod assets;
mod door;
mod entrance;
mod live;
mod params;
mod problem;
mod question;
mod remote;
mod routes;
mod row;
mod screen;
mod server;
mod store;
mod template;
mod v1;

pub use args::UiArgs;
pub use server::{UiError, run};
