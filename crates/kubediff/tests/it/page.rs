//! Issue 11: the page and `/v1`, over HTTP, as a browser and a program ask them.

mod answers;
pub(crate) mod browser;
mod door;
mod etag;
mod hostile;
mod live;
mod openapi;
mod schema;
mod screens;
