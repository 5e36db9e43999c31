//! Kubernetes informers for Rust: a local, indexed, always current copy of cluster objects, shared by every consumer in
//! the process, with change notifications.
//!
//! # The classic seven steps
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use informer::{Handler, SharedInformerFactory};
//! use k8s_openapi::api::core::v1::Pod;
//!
//! struct Hello;
//!
//! impl Handler<Pod> for Hello {
//!     async fn on_add(&mut self, pod: Arc<Pod>, _is_in_initial_list: bool) {
//!         println!("hello {:?}", pod.metadata.name);
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let config = kube_client::Config::infer().await?;           // 1. a client's configuration
//!     let factory = SharedInformerFactory::new(config)?;          // 2. a shared factory
//!     let pods = factory.informer::<Pod>();                       // 3. an informer
//!     let _hello = pods.add_handler(Hello)?;                      // 4. a handler
//!     factory.start();                                            // 5. start
//!     factory.wait_for_sync(Duration::from_secs(30)).await?;      // 6. wait for the first content
//!     for pod in pods.lister().namespace("default").list()? {     // 7. read
//!         println!("{:?}", pod.metadata.name);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # What to rely on
//!
//! `docs/CONTRACT.md` has the numbered promises, each with a test. In short:
//!
//! - The cache is never behind a notification, and never goes back in time.
//! - A handler is called for one change at a time, per object in the server's order.
//! - A handler that joins late gets what is there first: no gap, no duplicate.
//! - A slow handler delays nobody, and its memory is bounded.
//! - What was missed while disconnected is found out: deletions come as [`Deleted::Missed`], once.
//! - Dropping the last handle closes the watch and frees the memory.
//!
//! # Where to go
//!
//! | to | see |
//! |---|---|
//! | make informers, choose options | [`SharedInformerFactory`], [`FactoryBuilder`] |
//! | read objects | [`Lister`], [`Index`], [`Snapshot`] |
//! | be told of changes | [`Handler`], [`Changes`], [`Subscribe`] |
//! | begin with the cache of a former process | [`FactoryBuilder::saved_in`], [`Informer::load`] |
//! | know how it stands | [`Informer::status`], [`Informer::reports`], [`NotSynced`], [`metrics`] |

mod change;
mod changes;
mod choices;
mod error;
mod exchange;
mod factory;
mod feed;
mod handler;
mod index;
mod informer;
mod lister;
pub mod metrics;
mod reports;
mod resource;
mod runtime;
mod saving;
mod server;
mod shared;
mod snapshot;
mod subscribe;
mod sync;
mod transform;
pub mod transport;

pub use change::{Change, Deleted, Previous};
pub use changes::Changes;
pub use choices::{EncodingChoice, FirstListChoice, Http2, HttpVersion, Layout, StreamingListChoice};
pub use error::{Error, error_chain};
pub use factory::{FactoryBuilder, SharedInformerFactory};
pub use handler::{Handler, Registration};
pub use index::{Index, Key};
pub use informer::Informer;
pub use lister::Lister;
pub use reports::Reports;
pub use resource::ResourceType;
pub use saving::{LoadError, LoadedCache, SaveError, SavedCache};
pub use shared::Quarantined;
pub use snapshot::Snapshot;
pub use subscribe::Subscribe;
pub use sync::{Missing, NotSynced};
pub use transform::{Keep, Transform};

pub use informer_core::backoff::BackoffConfig;
pub use informer_core::mailbox::WhenFull;
pub use informer_core::reflector::{Cause, Report, Status};
pub use informer_core::wire::ApiStatus;
pub use informer_core::{
    DecodeError, Encoding, InvalidKey, InvalidSelector, Labels, Object, ObjectKey, PackedStorage,
    PlainStorage, ResourceVersion, Selector, Source, Storage, StorageError, Stored, StoredBytes, Uid, View,
};

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
