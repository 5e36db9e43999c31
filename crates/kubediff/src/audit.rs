//! Users from the audit log of the API server, beside the changes that their requests made.

mod event;
mod join;
mod matching;

pub(crate) use event::{Read, events};
pub(crate) use join::{Join, KEPT, Look, Seen};
