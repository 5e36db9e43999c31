//! Answers in protobuf (`application/vnd.kubernetes.protobuf`), cut into their objects while they come in.
//!
//! An object, or a list, stands behind four magic bytes in an envelope that says what it is (`runtime.Unknown` of
//! `k8s.io/apimachinery`). A watch sends frames: their length in four bytes, the highest first, then a `WatchEvent` whose
//! object is in such an envelope again.

mod list;
mod scan;
mod watch;

use informer_protobuf::wire::{Field, Fields, Value, varint};

pub use list::ProtobufListDecoder;
pub use scan::{ScannedMessage, scan_protobuf, scan_protobuf_bookmark};
pub use watch::ProtobufWatchDecoder;

use crate::ObjectKey;

/// The first bytes of every envelope.
pub(super) const MAGIC: &[u8; 4] = b"k8s\0";

/// What stands before a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    number: u64,
    /// How many bytes come behind it: none behind a number, which is counted to the header.
    following: u64,
    /// How many bytes it takes itself.
    bytes: usize,
}

/// Bytes that are no field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NoField;

impl Header {
    /// Reads a header; `None` if more bytes are needed.
    fn read(bytes: &[u8]) -> Result<Option<Self>, NoField> {
        let number = |bytes| varint(bytes).map_err(|_| NoField);
        let Some((tag, tag_bytes)) = number(bytes)? else { return Ok(None) };
        let behind_tag = number(bytes.get(tag_bytes..).unwrap_or_default());
        let header = |following, bytes| Some(Self { number: tag >> 3, following, bytes: tag_bytes + bytes });
        match tag & 7 {
            _ if tag >> 3 == 0 => Err(NoField),
            0 => Ok(behind_tag?.and_then(|(_, bytes)| header(0, bytes))),
            1 => Ok(header(8, 0)),
            2 => Ok(behind_tag?.and_then(|(length, bytes)| header(length, bytes))),
            5 => Ok(header(4, 0)),
            _ => Err(NoField),
        }
    }

    /// How many bytes follow, if so many can be.
    fn following(self) -> Option<usize> {
        usize::try_from(self.following).ok()
    }
}

/// The text of a field.
fn text(value: Value<'_>) -> Option<&str> {
    match value {
        Value::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// The value of the field with this number in a partial message; a truncated value is returned as far as it goes.
fn field_of_part(mut part: &[u8], number: u64) -> Option<&[u8]> {
    loop {
        let header = Header::read(part).ok()??;
        let rest = part.get(header.bytes..)?;
        let following = header.following()?;
        if header.number == number {
            return rest.get(..following.min(rest.len()));
        }
        part = rest.get(following..)?;
    }
}

/// The key of an object of whose message only the beginning is there, its metadata included.
fn key_of_part(part: &[u8]) -> Option<ObjectKey> {
    let header = Header::read(part).ok()??;
    // Every kind has its metadata first.
    if header.number != 1 {
        return None;
    }
    let end = header.bytes.checked_add(header.following()?)?;
    let metadata = informer_protobuf::scan(part.get(..end)?).ok()?;
    ObjectKey::new(Some(metadata.namespace), metadata.name).ok()
}

/// The key of an object whose metadata is undecodable, if at least its name and namespace decode.
fn key_of_damaged(message: &[u8]) -> Option<ObjectKey> {
    let metadata = field_of_part(message, 1)?;
    let text_of = |number| std::str::from_utf8(field_of_part(metadata, number)?).ok();
    ObjectKey::new(text_of(3), text_of(1)?).ok()
}

/// The fields of a short message that is there as a whole.
fn fields(message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    Fields::new(message).map_while(Result::ok)
}

#[cfg(test)]
mod tests;
