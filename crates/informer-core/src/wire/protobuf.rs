//! Responses in protobuf (`application/vnd.kubernetes.protobuf`), cut into their objects as they arrive.
//!
//! An object or a list begins with four magic bytes, followed by an envelope that names its type (`runtime.Unknown` of
//! `k8s.io/apimachinery`). A watch sends frames: four bytes with the length, the highest byte first, then a `WatchEvent`,
//! whose object is again in such an envelope.

mod scan;

use informer_protobuf::wire::{Field, Fields, Value, varint};

pub use scan::{ScannedMessage, scan_protobuf, scan_protobuf_bookmark};

use crate::ObjectKey;

/// The first bytes of every envelope.
pub(super) const MAGIC: &[u8; 4] = b"k8s\0";

/// The bytes before a field's value: its number and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) number: u64,
    /// The number of bytes after the header. It is zero for a varint, which counts as part of the header.
    pub(super) following: u64,
    /// The number of bytes of the header.
    pub(super) bytes: usize,
}

/// The bytes are not a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoField;

impl Header {
    /// Reads a header; `None` if more bytes are needed.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Self>, NoField> {
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

    /// The number of bytes that follow, if memory can hold so many.
    fn following(self) -> Option<usize> {
        usize::try_from(self.following).ok()
    }
}

/// The text of a field.
pub(super) fn text(value: Value<'_>) -> Option<&str> {
    match value {
        Value::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// The value of the field with this number in a partial message; a truncated value is returned as far as it goes.
pub(super) fn field_of_part(mut part: &[u8], number: u64) -> Option<&[u8]> {
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

/// The key of an object from the beginning of its message, which must include the metadata.
pub(super) fn key_of_part(part: &[u8]) -> Option<ObjectKey> {
    let header = Header::read(part).ok()??;
    // Every kind has its metadata as the first field.
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

/// The fields of a short message, which is complete.
pub(super) fn fields(message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    Fields::new(message).map_while(Result::ok)
}

#[cfg(test)]
mod tests;
