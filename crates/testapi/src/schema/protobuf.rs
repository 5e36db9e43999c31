//! Objects of built-in kinds as protobuf, in both directions: the typed clients of client-go prefer it, while the
//! server stores JSON.
//!
//! `table` has the numbers of fields, `decode` decodes the bodies of requests, and `encode` writes responses along a
//! `plan` that is derived from the table. An envelope around each object names its kind (`runtime.Unknown`).

mod decode;
mod encode;
mod plan;
mod table;

pub use decode::{ProtobufError, from_protobuf};
pub use encode::{Encoder, to_protobuf};

/// The bytes before the envelope of every object.
const MAGIC: &[u8] = b"k8s\0";
