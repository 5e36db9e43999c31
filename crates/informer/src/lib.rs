//! Kubernetes informers for Rust: a local, indexed, always current copy of cluster objects, shared by every consumer in
//! the process, with change notifications.
//!
//! # The classic seven steps
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use informer::{Handler, Item, SharedInformerFactory};
//! use k8s_openapi::api::core::v1::Pod;
//!
//! struct Hello;
//!
//! impl Handler<Pod> for Hello {
//!     async fn on_add(&mut self, pod: Item<Pod>, _is_in_initial_list: bool) {
//!         println!("hello {}", pod.key());
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let config = informer::kube::Config::infer().await?;           // 1. a client's configuration
//!     let factory = SharedInformerFactory::new(config)?;          // 2. a shared factory
//!     let pods = factory.informer::<Pod>();                       // 3. an informer
//!     let _hello = pods.add_handler(Hello)?;                      // 4. a handler
//!     factory.start();                                            // 5. start
//!     factory.wait_for_sync(Duration::from_secs(30)).await?;      // 6. wait for the initial lists
//!     for pod in pods.lister().namespace("default").list() {      // 7. read
//!         println!("{}", pod.key());
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Promises
//!
//! The module [`promises`] has the numbered promises, each with a test. In short:
//!
//! - The cache is never behind a notification, and never goes back in time.
//! - A handler gets one call at a time. The calls for one object come in the server's order.
//! - A handler that joins late gets the existing objects first: no gap, no duplicate.
//! - A slow handler delays no other, and its memory is bounded.
//! - Changes that happen during a disconnect are found by the next list or watch. A deletion that no watch event showed has
//!   the reason [`DeleteReason::Missed`] and is reported once. With a label selector every deletion has the reason
//!   [`DeleteReason::DeletedOrDeselected`], because the server sends the same event for both.
//! - Dropping the last handle closes the watch and frees the memory.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `http2` (default) | [`HttpVersion::Http2`]; needs the crates `h2` and `hyper-util` |
//! | `packed` (default) | [`Layout::Packed`]: without it, caches keep objects as received and take ten times the memory |
//! | `save` (default) | [`FactoryBuilder::saved_in`], [`Informer::save`] and [`Informer::load`] |
//! | `schema` | custom resources by `#[derive(CustomResource)]`: `CustomResourceExt` of [`kube::core`] |
//! | `ring` (default), `aws-lc-rs`, `openssl` | TLS: the module [`transport`] compares the three |
//!
//! Only `packed` and `save` need zstd, whose C code needs a C compiler at build time.
//!
//! # Versions
//!
//! Each major release of kube causes a major release of this crate: the module [`kube`] explains why, and re-exports what
//! programs need of kube. The module [`crates`] re-exports the other crates whose types are part of this API.
//!
//! # Where to go
//!
//! The module [`guide`] describes the whole API on one page, the module [`promises`] what it guarantees.
//!
//! | to | see |
//! |---|---|
//! | make informers, choose options | [`SharedInformerFactory`], [`FactoryBuilder`] |
//! | choose objects by namespace, label and field | [`Selection`], [`Selector`], [`FieldSelector`] |
//! | find a resource by its name | [`SharedInformerFactory::informer_named`], [`Catalog`] |
//! | read objects, each with its identity | [`Lister`], [`Index`], [`Snapshot`], [`Item`] |
//! | read one's own writes | [`Informer::at_least`], [`Informer::gone`] |
//! | name objects | [`ObjectKey`], [`ObjectRef`], [`FromObject`] |
//! | get notified of changes | [`Handler`], [`Changes`], [`Subscribe`] |
//! | start from a saved cache | [`FactoryBuilder::saved_in`], [`Informer::load`] |
//! | monitor an informer | [`Informer::status`], [`Informer::reports`], [`NotSynced`], [`metrics`] |

// Programs keep public handles in structs of their own, and want to derive `Debug` for these.
#![warn(missing_debug_implementations)]

mod error;
mod factory;
pub mod guide;
mod informer;
mod inner;
pub mod kube;
mod lock;
mod notify;
mod options;
#[doc = include_str!("promises.md")]
pub mod promises {}
mod read;
#[cfg(feature = "save")]
mod saving;
mod server;
pub mod transport;

pub use error::{Error, error_chain};
pub use factory::{FactoryBuilder, SharedInformerFactory};
pub use informer::Informer;
pub use inner::ending::{NotEnded, Unfinished, Work};
pub use inner::metrics;
pub use inner::sync::{Missing, NotSynced};
pub use inner::wait::NotReached;
pub use kube::FromObject;
pub use notify::change::{Change, Previous};
pub use notify::changes::Changes;
pub use notify::deleted::{DeleteReason, Deleted};
pub use notify::existence::{ConfirmError, Existence};
pub use notify::handler::{Handler, Registration};
pub use notify::reports::Reports;
pub use notify::subscribe::Subscribe;
#[cfg(feature = "http2")]
pub use options::choices::Http2;
pub use options::choices::{EncodingChoice, FirstListChoice, HttpVersion, Layout, StreamingListChoice};
pub use options::reflector_options::ReflectorOptions;
pub use options::resource::ResourceType;
#[doc(hidden)]
pub use options::resource::path_segment;
pub use options::selection::Selection;
pub use options::transform::{Keep, Transform};
pub use read::index::{Index, Key};
pub use read::item::{Item, Items};
pub use read::lister::Lister;
pub use read::object_ref::ObjectRef;
pub use read::snapshot::Snapshot;
#[cfg(feature = "save")]
pub use saving::{LoadError, LoadedCache, SaveError, SavedCache};
pub use server::discovery::{Catalog, DiscoveryError};
pub use server::share;

#[cfg(feature = "packed")]
pub use informer_core::PackedStorage;
pub use informer_core::backoff::BackoffConfig;
pub use informer_core::engine::Quarantined;
pub use informer_core::mailbox::WhenFull;
pub use informer_core::reflector::{Cause, Report, Status};
pub use informer_core::wire::ApiStatus;
pub use informer_core::{
    ControllerReference, DecodeError, Encoding, FieldSelector, InvalidKey, InvalidSelector, Labels, Object,
    ObjectBytes, ObjectKey, Operator, Origin, PlainStorage, Requirement, ResourceVersion, Selector, Storage,
    StorageError, Stored, StoredBytes, Uid, View,
};

/// Crates whose types are part of this crate's API, in the versions that it uses. The module [`kube`] re-exports kube's.
pub mod crates {
    pub use {bytes, futures_core, http, serde_json, tokio_util};
}

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
