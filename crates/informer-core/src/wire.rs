//! Cuts the bytes of a response into its items, without building a tree and without holding a whole list.
//!
//! [`ListDecoder`] and [`WatchDecoder`] cut a response into objects as its chunks arrive, [`scan_object`] reads an object's
//! metadata, and [`ApiStatus`] is the server's error. No input makes this module panic.

mod cursor;
mod error;
mod event_type;
mod list;
mod nesting;
mod owners;
mod protobuf;
mod scan;
mod status;
mod watch;
mod window;

#[cfg(test)]
use fuzzing::json as testing;

pub use error::WireError;
pub use event_type::EventType;
pub use list::{Limits, ListDecoder, ListMeta, ListPart};
pub(crate) use owners::controller;
pub use owners::controller_uid;
pub use protobuf::{
    ProtobufListDecoder, ProtobufWatchDecoder, ScannedMessage, scan_protobuf, scan_protobuf_bookmark,
};
use scan::key_of_part;
pub use scan::{
    Bookmark, ScanError, ScannedObject, TypeMeta, managed_fields_span, scan_bookmark, scan_object,
    without_managed_fields,
};
pub use status::{ApiStatus, StatusCause};
pub use watch::{WatchDecoder, WatchFrame};
