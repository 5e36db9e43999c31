//! The logic of the `informer` crate.
//!
//! It has no I/O, no clock and no async runtime: bytes and the time go in; requests, cache changes and notifications come
//! out.

// Other programs put public handles into their own structs and derive `Debug` for them.
#![warn(missing_debug_implementations)]

pub mod backoff;
mod change;
pub mod control;
pub mod engine;
pub mod exposition;
mod histogram;
#[cfg(all(test, loom))]
mod interleavings;
#[doc(hidden)]
pub mod internals;
mod key;
mod labels;
pub mod mailbox;
mod memory;
mod object;
pub mod queue;
pub mod reader;
pub mod reflector;
pub mod saved;
pub mod share;
pub mod store;
mod sync;
mod time;
mod uid;
pub mod upstream;
mod version;
mod view;
pub mod wire;

pub use change::{Change, Delta, Origin};
pub use histogram::Histogram;
pub use key::{InvalidKey, ObjectKey};
pub use kube_selector::{FieldSelector, InvalidSelector, Operator, Requirement, Selector};
pub use labels::Labels;
#[cfg(feature = "packed")]
pub use object::PackedStorage;
pub use object::{
    BySerde, ContentKey, ControllerReference, Decode, DecodeError, Encoding, HotSet, Object, ObjectBytes,
    PlainStorage, Retention, Room, Shelf, Storage, StorageError, Stored, StoredBytes,
};
pub use store::{Cache, Checkpoint, Index, Scope, Snapshot, SourceId, Store};
pub use time::Time;
pub use uid::Uid;
pub use version::ResourceVersion;
pub use view::View;
