//! The list decoder: any bytes in any chunks.

use fastrand::Rng;
use informer_core::ObjectKey;
use informer_core::internals::{Codec, ListDecoder, ListMeta, ListPart, WireError};
use serde_json::{Value, json};

use crate::body::Body;
use crate::{json, oracle};

/// Everything that a decoder says.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    parts: Vec<Part>,
    pub(crate) end: Result<ListMeta, WireError>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Part {
    Meta(ListMeta),
    Item(Vec<u8>),
    Skipped(ObjectKey),
}

impl Answer {
    /// The items and the keys of those that were skipped.
    pub(crate) fn items(&self) -> Vec<&Part> {
        self.parts.iter().filter(|part| !matches!(part, Part::Meta(_))).collect()
    }
}

/// The answer does not depend on the chunks, is serde_json's where that has one, and takes no more than its window.
pub fn run(input: &[u8]) {
    let body = Body::read(input);
    let limit = body.limits.item_bytes;
    let answer = decode(Codec::Json, &body, &[body.bytes], limit);
    assert_eq!(decode(Codec::Json, &body, &body.chunks(), limit), answer, "in chunks, and whole");
    for part in answer.items() {
        if let Part::Item(json) = part {
            oracle::check_object(json);
        }
    }
    let Some(list) = oracle::plain_json(body.bytes) else { return };
    match &answer.end {
        Ok(meta) => {
            let values = list["items"].as_array().cloned().unwrap_or_default();
            let items = answer.items();
            assert_eq!(items.len(), values.len());
            for (value, item) in values.iter().zip(items) {
                match item {
                    Part::Item(json) => {
                        assert!(json.len() <= limit);
                        assert_eq!(serde_json::from_slice::<Value>(json).unwrap(), *value);
                    }
                    Part::Skipped(key) => oracle::check_key(key, value),
                    Part::Meta(_) => panic!("metadata is no item"),
                }
            }
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            assert_eq!(meta.resource_version.to_string(), text(&list["metadata"]["resourceVersion"]));
            assert_eq!(meta.continue_token.clone().unwrap_or_default(), text(&list["metadata"]["continue"]));
            assert_eq!(meta.kind.clone().unwrap_or_default(), text(&list["kind"]));
        }
        Err(error) if body.bytes.len() > limit && error.is_too_long() => {}
        Err(error) => assert!(!is_a_list(&list), "a list was refused: {error}"),
    }
}

/// Reads a list in these chunks, of which the longest part that is held has at most this many bytes.
pub(crate) fn decode(codec: Codec, body: &Body<'_>, chunks: &[&[u8]], longest: usize) -> Answer {
    let most = body.holds_at_most_of(longest, chunks);
    let mut decoder = ListDecoder::new(codec, body.limits);
    let mut parts = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        assert!(decoder.held_bytes() <= most, "{} bytes held, {most} allowed", decoder.held_bytes());
        loop {
            parts.push(match decoder.next() {
                Ok(None) => break,
                Ok(Some(ListPart::Meta(meta))) => Part::Meta(meta.clone()),
                Ok(Some(ListPart::Item(item))) => Part::Item(item.to_vec()),
                Err(error) => match error.skipped() {
                    Some(key) => Part::Skipped(key.clone()),
                    None => {
                        assert_eq!(decoder.finish(), Err(error.clone()), "an error is for good");
                        return Answer { parts, end: Err(error) };
                    }
                },
            });
        }
    }
    Answer { parts, end: decoder.finish() }
}

/// Whether nothing about it may be refused.
fn is_a_list(list: &Value) -> bool {
    let is_text = |value: &Value| value.is_null() || value.is_string();
    let metadata = &list["metadata"];
    let count = &metadata["remainingItemCount"];
    list.is_object()
        && list["items"].is_array()
        && list.get("rows").is_none()
        && list.get("kind").is_none_or(|kind| kind.is_string() && kind != "Table")
        && list.get("apiVersion").is_none_or(Value::is_string)
        && (metadata.is_null() || metadata.is_object())
        && is_text(&metadata["resourceVersion"])
        && is_text(&metadata["continue"])
        && (count.is_null() || count.is_i64())
}

/// A list, cut at random.
pub fn example(seed: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(seed);
    let items: Vec<_> = (0..random.usize(..4)).map(|_| json::object(&mut random)).collect();
    let list = json!({
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": random.u32(1..).to_string(), "continue": json::text(&mut random)},
        "items": items,
    });
    let spaced = random.bool();
    let list = json::write(&mut random, &list, spaced);
    Body::write(&mut random, &list)
}
