//! The decoder of watches in protobuf: any bytes in any chunks.

use fastrand::Rng;
use informer_core::internals::{Codec, EventType, scan_protobuf, scan_protobuf_bookmark};
use informer_core::wire::ScanError;
use informer_protobuf::open;
use informer_protobuf::wire::{Fields, Value};

use super::fields::fields;
use super::message::{MAGIC, envelope};
use super::{Message, check_message, objects};
use crate::body::Body;
use crate::watches::{Event, TYPES, decode};

/// The answer does not depend on the chunks, is the naive one frame by frame, and takes no more than its window.
pub fn run(input: &[u8]) {
    let body = Body::read(input);
    let answer = decode(Codec::Protobuf, &body, &[body.bytes]);
    assert_eq!(decode(Codec::Protobuf, &body, &body.chunks()), answer, "in chunks, and whole");

    let limit = body.limits.item_bytes;
    let mut events = answer.events.into_iter();
    let mut rest = body.bytes;
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = u32::from_be_bytes(*length) as usize;
        // The bytes of an over-long event within the limit decide whether it can be skipped.
        let Some(part) = behind.get(..length.min(limit)) else { break };
        match events.next() {
            Some(event) if length <= limit => check(part, event),
            Some(event) => {
                let error = event.expect_err("it is too long");
                assert!(error.key().is_some());
                // A deletion needs more. Of a repeated field only the first is decoded.
                let whole = behind.get(..length).filter(|frame| is_plain(frame));
                if let Some((kind, object)) = whole.and_then(naive_event).flatten() {
                    assert!(matches!(kind, EventType::Added | EventType::Modified));
                    let envelope = object.strip_prefix(MAGIC).and_then(fields).unwrap_or_default();
                    if let Some((_, object)) = envelope.iter().find(|(number, _)| *number == 2) {
                        let key = scan_protobuf(object).map(|scanned| scanned.into_key());
                        assert_eq!(key.as_ref().ok(), error.key());
                    }
                }
            }
            None => {
                assert!(
                    length > limit && answer.end.is_err_and(|error| error.is_too_long()),
                    "an event is missing"
                );
                return;
            }
        }
        let Some(after) = behind.get(length..) else { break };
        rest = after;
    }
    assert_eq!(events.next(), None);
    match answer.end {
        Ok(last) => assert!(last.is_none() && rest.is_empty()),
        Err(error) => assert!(error.is_truncated() && !rest.is_empty(), "{error}"),
    }
}

/// Whether a frame was decoded correctly.
fn check(frame: &[u8], event: Result<Event, ScanError>) {
    if let Ok((kind, object)) = &event {
        if *kind == EventType::Bookmark {
            let _ = scan_protobuf_bookmark(object);
        }
        if let Ok(object) = open(object) {
            check_message(object.raw);
        }
    }
    if let Some(expected) = naive_event(frame) {
        let event = event.as_ref().ok().map(|(kind, object)| (*kind, &**object));
        assert_eq!(event, expected);
    }
}

/// The event of a frame, if it is one. `None` for frames with damage that the decoder need not detect.
fn naive_event(frame: &[u8]) -> Option<Option<(EventType, &[u8])>> {
    let Ok(fields_of_event) = Fields::new(frame).collect::<Result<Vec<_>, _>>() else { return Some(None) };
    let last = |number| match fields_of_event.iter().rev().find(|field| field.number == number)?.value {
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    };
    let kind = last(1).and_then(|name| TYPES.iter().find(|(other, _)| other.as_bytes() == name));
    let object = match last(2) {
        Some(extension) => {
            fields(extension)?.iter().find(|(number, _)| *number == 1).map(|(_, object)| *object)
        }
        None => None,
    };
    Some(kind.map(|(_, kind)| *kind).zip(object))
}

/// Whether an event has each of its fields once.
fn is_plain(frame: &[u8]) -> bool {
    fields(frame).is_some_and(|fields| fields.iter().map(|(number, _)| *number).eq([1, 2]))
}

/// A few events, cut at random.
pub fn example(seed: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(seed);
    let mut stream = Vec::new();
    for _ in 0..random.usize(1..4) {
        let (name, _) = TYPES[random.usize(..TYPES.len())];
        let mut event = Message::new().bytes(1, name);
        // The last one counts.
        for _ in 0..if random.u8(..6) == 0 { 2 } else { 1 } {
            let object = envelope("v1", "Secret", objects::any(&mut random));
            event = event.message(2, Message::new().bytes(1, object));
        }
        let event = event.into_bytes();
        stream.extend(u32::try_from(event.len()).unwrap().to_be_bytes());
        stream.extend(event);
    }
    if random.u8(..4) == 0 {
        stream.truncate(random.usize(..stream.len()));
    }
    Body::write(&mut random, &stream)
}
