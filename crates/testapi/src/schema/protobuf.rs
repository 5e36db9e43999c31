//! Objects of built-in kinds as protobuf, in both directions: clients of client-go that were generated for built-in
//! kinds prefer it, while the server keeps JSON.
//!
//! `table` has the fields' numbers, `decode` reads what clients send, `encode` writes what they get, along the `plan`
//! that is made of the table. Around each object is an envelope that says its kind (`runtime.Unknown`).

mod decode;
mod encode;
mod plan;
mod table;

pub use decode::{ProtobufError, from_protobuf};
pub use encode::{Encoder, to_protobuf};

/// What stands before the envelope of every object.
const MAGIC: &[u8] = b"k8s\0";
