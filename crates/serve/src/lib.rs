//! The reading half of the Kubernetes API over any versioned collection of objects.
//!
//! Implement [`Collection`] for each resource and [`Catalog`] for all of them, over objects with a history: in memory,
//! in a file, in another cache. The result is an API server that `kubectl get` and the list and watch of every client
//! understand: discovery, get, paged lists, watches, streaming lists, tables, metadata only, selectors, bookmarks and
//! compression. Writes are not part of this crate.
//!
//! The crate `kube-table` has the resources and the cells of their tables: [`builtin`] has the built-in resources,
//! [`Resource::defined_by`] reads those of a CustomResourceDefinition.

// A public handle is in the structs of other programs, which want to derive `Debug`.
#![warn(missing_debug_implementations)]

mod answer;
mod body;
mod catalog;
mod collection;
mod discovery;
mod fresh;
mod get;
mod gzip;
pub mod http;
mod json;
mod list;
mod negotiate;
mod object;
mod openapi;
mod options;
mod parameters;
mod protobuf;
mod render;
mod representation;
mod route;
mod selector;
mod service;
mod status;
mod token;
mod watch;
pub mod wire;

pub use body::{Body, full};
pub use catalog::{Catalog, Protobuf, Resources, ServerVersion};
pub use collection::{Batch, Change, Collection, CollectionError, Event, Events, Listing, Objects, Range};
pub use gzip::compressed;
pub use kube_table::{Column, Columns, Resource, SelectableField, Subresource, builtin, selector_text};
pub use object::{Labels, Object};
pub use options::ServeOptions;
pub use route::{Query, ResourceRequest, Route, route};
pub use service::Serve;
pub use status::{About, Reason, Status, StatusCause};
