//! The page: `kubediff ui` answers a browser from a history, and programs as JSON. Nothing here changes anything.

pub(crate) mod address;
mod args;
mod assets;
mod at;
mod behind;
mod door;
mod entrance;
mod error;
mod etag;
mod listener;
mod live;
mod params;
mod past;
mod problem;
mod question;
mod remote;
mod review;
mod rights;
mod routes;
mod row;
mod screen;
mod server;
mod sessions;
mod store;
mod template;
mod v1;
mod viewer;
mod wanted;

pub use args::{AtArgs, UiArgs};
pub use at::{AtError, run as run_at};
#[cfg(feature = "mcp")]
pub(crate) use behind::Behind;
pub use error::UiError;
pub use listener::WebError;
pub(crate) use listener::{Answered, Bound, Listener};
pub use server::run;
pub(crate) use sessions::Guests;
pub(crate) use store::Place;
