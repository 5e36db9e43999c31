//! Drops `managedFields`, which are a third of many objects and of no use to most readers.

use std::borrow::Cow;

use crate::wire::{Field, Fields, Value};

/// The field number in a whole object.
const METADATA: u32 = 1;
const METADATA_TAG: u8 = 1 << 3 | 2;
/// The field number in `ObjectMeta`.
const MANAGED_FIELDS: u32 = 17;

/// The same object without `metadata.managedFields`. Borrowed if it has none, or if the message is malformed.
///
/// Takes time linear in the metadata, plus one copy of the object.
///
/// ```
/// // metadata { name: "a", managedFields {} }
/// let raw = b"\x0a\x06\x0a\x01a\x8a\x01\x00";
/// assert_eq!(informer_protobuf::without_managed_fields(raw).as_ref(), b"\x0a\x03\x0a\x01a");
/// ```
pub fn without_managed_fields(raw: &[u8]) -> Cow<'_, [u8]> {
    spliced(raw).map_or(Cow::Borrowed(raw), Cow::Owned)
}

fn spliced(raw: &[u8]) -> Option<Vec<u8>> {
    let mut fields = Fields::new(raw);
    loop {
        let start = fields.offset();
        let Field { number, value } = fields.next()?.ok()?;
        if let (METADATA, Value::Bytes(metadata)) = (number, value) {
            let length = metadata.len() - managed(metadata)?;
            let mut object = Vec::with_capacity(raw.len());
            object.extend_from_slice(raw.get(..start)?);
            object.push(METADATA_TAG);
            write_varint(length, &mut object);
            keep(metadata, &mut object)?;
            object.extend_from_slice(raw.get(fields.offset()..)?);
            return Some(object);
        }
    }
}

/// How many bytes of the metadata they take; `None` if it has none.
fn managed(metadata: &[u8]) -> Option<usize> {
    let mut length = 0;
    let mut fields = Fields::new(metadata);
    loop {
        let start = fields.offset();
        match fields.next() {
            None => return (length > 0).then_some(length),
            Some(field) if field.ok()?.number == MANAGED_FIELDS => length += fields.offset() - start,
            Some(_) => {}
        }
    }
}

/// Copies all other fields, in as few runs of bytes as possible.
fn keep(metadata: &[u8], object: &mut Vec<u8>) -> Option<()> {
    let mut fields = Fields::new(metadata);
    let mut kept_from = 0;
    loop {
        let start = fields.offset();
        match fields.next() {
            None => break,
            Some(field) if field.ok()?.number == MANAGED_FIELDS => {
                object.extend_from_slice(metadata.get(kept_from..start)?);
                kept_from = fields.offset();
            }
            Some(_) => {}
        }
    }
    object.extend_from_slice(metadata.get(kept_from..)?);
    Some(())
}

fn write_varint(mut number: usize, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).unwrap_or(0) | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap_or(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_go_wherever_they_are() {
        // Labels of some length, so that the length of the metadata takes a byte less without the managed fields.
        let (name, managed, rest) = (&b"\x0a\x01a"[..], &b"\x8a\x01\x40"[..], &b"\x12\x02\x08\x01"[..]);
        let managed = [managed, &[7; 0x40]].concat();
        let labels = [&b"\x5a\x20"[..], &[9; 0x20]].concat();
        let metadata = [&managed, name, &managed, &labels, &managed].concat();
        let object = |metadata: &[u8]| {
            let mut object = vec![0x0a];
            write_varint(metadata.len(), &mut object);
            object.extend([metadata, rest].concat());
            object
        };
        let expected = object(&[name, &labels].concat());
        assert_eq!(without_managed_fields(&object(&metadata)).as_ref(), expected);
        assert!(matches!(without_managed_fields(&expected), Cow::Borrowed(_)));
    }

    #[test]
    fn what_cannot_be_read_stays() {
        for raw in [&b""[..], b"\x0a", b"\x0a\x05\x8a\x01", b"\x12\x00", b"\x0a\x04\x8a\x01\x05\x00"] {
            assert!(matches!(without_managed_fields(raw), Cow::Borrowed(same) if same == raw));
        }
    }
}
