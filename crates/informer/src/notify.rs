//! Changes, and the ways to receive them: streams, handlers, and the reports of an informer.

pub(crate) mod change;
pub(crate) mod changes;
mod confirm;
pub(crate) mod deleted;
pub(crate) mod existence;
pub(crate) mod handler;
mod notifications;
pub(crate) mod reports;
pub(crate) mod subscribe;
