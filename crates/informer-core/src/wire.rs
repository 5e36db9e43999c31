//! Cuts the bytes of a response into its items, without building a tree and without holding a whole list.
//!
//! Decoders of lists and watches cut a response into objects as its chunks arrive, [`scan_object`] reads an object's metadata,
//! and [`ApiStatus`] is the server's error. No input makes this module panic.

mod cursor;
pub(crate) mod decoder;
pub(crate) mod error;
pub(crate) mod event_type;
pub(crate) mod list;
mod nesting;
mod owners;
pub(crate) mod protobuf;
pub(crate) mod scan;
mod status;
pub(crate) mod watch;
mod window;

#[cfg(test)]
use fuzzing::json as testing;

pub(crate) use decoder::Codec;
pub use decoder::Limits;
pub(crate) use error::WireError;
pub(crate) use event_type::EventType;
pub(crate) use list::{ListDecoder, ListMeta, ListPart};
pub(crate) use owners::controller;
pub use owners::controller_uid;
pub(crate) use protobuf::{ScannedMessage, scan_protobuf, scan_protobuf_bookmark};
pub(crate) use scan::{Bookmark, ScannedObject, scan_bookmark};
pub use scan::{ScanError, managed_fields_span, scan_object, without_managed_fields};
pub use status::{ApiStatus, StatusCause};
pub(crate) use watch::{WatchDecoder, WatchFrame};
