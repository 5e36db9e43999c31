//! Kubernetes objects as the rows that `kubectl get` shows, without a server.
//!
//! [`Table`] prints objects as texts, [`Printer`] as the cells that an API server sends. A [`Resource`] says which columns its
//! objects have: [`builtin`] has the built-in resources, [`Resource::defined_by`] reads those of a
//! CustomResourceDefinition.
//!
//! ```
//! use std::time::{Duration, SystemTime};
//!
//! let resources = kube_table::builtin::resources();
//! let config_maps = resources.iter().find(|resource| &*resource.plural == "configmaps").unwrap();
//! let object = serde_json::json!({
//!     "metadata": {"name": "cart", "creationTimestamp": "1970-01-01T00:00:00Z"},
//!     "data": {"color": "red"},
//! });
//! let row = kube_table::Table::of(config_maps, false).row(&object, SystemTime::UNIX_EPOCH + Duration::from_secs(300));
//! assert_eq!(row, ["cart", "1", "5m"]);
//! ```

// A public handle is in the structs of other programs, which want to derive `Debug`.
#![warn(missing_debug_implementations)]

pub mod builtin;
mod definition;
mod json_path;
mod resource;
mod table;

pub use definition::version_priority;
pub use resource::{Column, Columns, Resource, SelectableField, Subresource};
pub use table::{Printer, Table, selector_text};
