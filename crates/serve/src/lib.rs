//! The reading half of the Kubernetes API over any versioned collection of objects.
//!
//! Whoever has objects with a history, in memory, in a file, in somebody else's cache, implements [`Collection`] for
//! each resource and [`Catalog`] for all of them, and has an API server that `kubectl get` and every client's list and
//! watch understand: discovery, get, list in pages, watch, streaming lists, tables, metadata only, selectors,
//! bookmarks and compression. This crate knows nothing of writes.

mod body;
mod catalog;
mod collection;
mod object;
mod resource;
mod status;

pub use body::{Body, full};
pub use catalog::{Catalog, Resources, ServerVersion};
pub use collection::{Batch, Change, Collection, CollectionError, Event, Events, Listing, Range};
pub use object::{Labels, Object};
pub use resource::{Column, Columns, Resource, SelectableField, Subresource};
pub use status::{About, Cause, Reason, Status};
