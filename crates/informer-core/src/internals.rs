//! The decoders of responses, by themselves: for the tests, the simulation and fuzzing. They are no part of the API.

pub use crate::wire::decoder::Codec;
pub use crate::wire::error::WireError;
pub use crate::wire::event_type::EventType;
pub use crate::wire::list::{ListDecoder, ListMeta, ListPart};
pub use crate::wire::protobuf::{ScannedMessage, scan_protobuf, scan_protobuf_bookmark};
pub use crate::wire::scan::{Bookmark, ScannedObject, TypeMeta, scan_bookmark};
pub use crate::wire::watch::{WatchDecoder, WatchFrame};
