//! The decoder of lists in protobuf: any bytes in any chunks.

use fastrand::Rng;
use informer_core::internals::{Codec, WireError, scan_protobuf};
use informer_protobuf::wire::{Fields, Value};

use super::fields::fields;
use super::message::{MAGIC, envelope};
use super::{Message, check_message, objects};
use crate::body::Body;
use crate::json;
use crate::lists::{Part, decode};

/// A tag and a length, as long as they can be.
const LONGEST_HEADER: usize = 20;

/// A body that is a list, as it is naively read.
struct List<'a> {
    kind: String,
    metadata: Vec<&'a [u8]>,
    items: Vec<&'a [u8]>,
    /// The longest part that is no item and is held until complete.
    longest_head: usize,
}

/// The answer does not depend on the chunks, is the naive one, and takes no more than its window.
pub fn run(input: &[u8]) {
    let body = Body::read(input);
    let list = list(body.bytes);
    let limit = body.limits.item_bytes;
    let longest =
        list.as_ref().map_or(body.bytes.len(), |list| limit.max(list.longest_head)) + LONGEST_HEADER;
    let answer = decode(Codec::Protobuf, &body, &[body.bytes], longest);
    assert_eq!(decode(Codec::Protobuf, &body, &body.chunks(), longest), answer, "in chunks, and whole");

    let items = answer.items();
    for part in &items {
        if let Part::Item(item) = part {
            check_message(item);
        }
    }
    let end = &answer.end;
    let Some(list) = list else {
        assert!(end.is_err(), "what is no list was read");
        return;
    };
    for (at, item) in list.items.iter().enumerate() {
        match items.get(at) {
            Some(Part::Item(ours)) => assert!(ours == item && item.len() <= limit, "item {at}"),
            Some(Part::Skipped(key)) => {
                assert!(item.len() > limit, "item {at}");
                assert_eq!(scan_protobuf(item).map(|scanned| scanned.into_key()).as_ref(), Ok(key));
            }
            Some(Part::Meta(_)) | None => {
                let is_too_long = end.as_ref().is_err_and(WireError::is_too_long);
                assert!(is_too_long && item.len() > limit, "item {at}");
                return;
            }
        }
    }
    assert_eq!(items.len(), list.items.len());
    let meta = end.as_ref().unwrap_or_else(|error| panic!("a list was refused: {error}"));
    assert_eq!(meta.kind.as_ref(), Some(&list.kind));
    if let [metadata] = *list.metadata {
        let text = |number| text(metadata, number).unwrap_or_default();
        assert_eq!(meta.resource_version.to_string(), text(2));
        assert_eq!(meta.continue_token.clone().unwrap_or_default(), text(3));
    }
}

/// Of bytes that are all there.
fn list(body: &[u8]) -> Option<List<'_>> {
    let (mut kind, mut content, mut longest_head) = (None, None, 0);
    for (number, bytes) in fields(body.strip_prefix(MAGIC)?)? {
        match (number, content) {
            (1, None) => {
                longest_head = longest_head.max(bytes.len());
                if Fields::new(bytes).map_while(Result::ok).any(|field| field.number == 2) {
                    kind = text(bytes, 2);
                }
            }
            (2, None) if kind.as_ref().is_some_and(|kind| kind.ends_with("List")) => content = Some(bytes),
            (2, _) => return None,
            // It says how the content is encoded.
            (3, _) if !bytes.is_empty() => return None,
            _ => {}
        }
    }
    let fields = fields(content?)?;
    let of = |wanted| fields.iter().filter(move |(number, _)| *number == wanted).map(|(_, bytes)| *bytes);
    let metadata: Vec<&[u8]> = of(1).collect();
    longest_head = metadata.iter().map(|bytes| bytes.len()).fold(longest_head, usize::max);
    Some(List { kind: kind?, metadata, items: of(2).collect(), longest_head })
}

/// The last text of this number, if the last of it is one.
fn text(message: &[u8], number: u32) -> Option<String> {
    let fields = Fields::new(message).map_while(Result::ok);
    match fields.filter(|field| field.number == number).last()?.value {
        Value::Bytes(bytes) => std::str::from_utf8(bytes).ok().map(str::to_owned),
        _ => None,
    }
}

/// A list, cut at random.
pub fn example(seed: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(seed);
    let metadata = Message::new()
        .bytes(2, random.u32(1..).to_string())
        .bytes(3, json::text(&mut random))
        .number(4, random.u8(..));
    let mut list = Message::new().message(1, metadata);
    for _ in 0..random.usize(..4) {
        list = list.bytes(2, objects::any(&mut random));
    }
    let kind = if random.u8(..8) == 0 { "Status" } else { "SecretList" };
    let mut body = envelope("v1", kind, list);
    if random.u8(..4) == 0 {
        body.truncate(random.usize(..body.len()));
    }
    Body::write(&mut random, &body)
}
