//! Issue 23: the API of the past, as clients of Kubernetes ask it.

mod command;
mod model;
pub(crate) mod past;
mod reads;
mod refusals;
