//! The list decoder: any bytes in any chunks.

use fastrand::Rng;
use informer_core::internals::{ListDecoder, ListMeta, ListPart, WireError};
use serde_json::{Value, json};

use crate::body::Body;
use crate::{json, oracle};

/// Everything that a decoder says.
#[derive(Debug, PartialEq)]
struct Answer {
    parts: Vec<Part>,
    end: Result<ListMeta, WireError>,
}

#[derive(Debug, PartialEq)]
enum Part {
    Meta(ListMeta),
    Item(Vec<u8>),
}

/// The answer does not depend on the chunks, is serde_json's where that has one, and takes no more than its window.
pub fn run(input: &[u8]) {
    let body = Body::read(input);
    let answer = decode(&body, &[body.bytes]);
    assert_eq!(decode(&body, &body.chunks()), answer, "in chunks, and whole");
    let items: Vec<&[u8]> = answer
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Item(json) => Some(&**json),
            Part::Meta(_) => None,
        })
        .collect();
    items.iter().for_each(|json| oracle::check_object(json));
    let Some(list) = oracle::plain_json(body.bytes) else { return };
    match &answer.end {
        Ok(meta) => {
            let values: Vec<Value> = items.iter().map(|json| serde_json::from_slice(json).unwrap()).collect();
            assert_eq!(values, list["items"].as_array().cloned().unwrap_or_default());
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            assert_eq!(meta.resource_version.to_string(), text(&list["metadata"]["resourceVersion"]));
            assert_eq!(meta.continue_token.clone().unwrap_or_default(), text(&list["metadata"]["continue"]));
            assert_eq!(meta.kind.clone().unwrap_or_default(), text(&list["kind"]));
        }
        Err(error) if body.bytes.len() > body.limits.item_bytes && error.is_too_long() => {}
        Err(error) => assert!(!is_a_list(&list), "a list was refused: {error}"),
    }
}

fn decode(body: &Body<'_>, chunks: &[&[u8]]) -> Answer {
    let most = body.holds_at_most(chunks);
    let mut decoder = ListDecoder::new(body.limits);
    let mut parts = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        assert!(decoder.held_bytes() <= most, "{} bytes held, {most} allowed", decoder.held_bytes());
        loop {
            parts.push(match decoder.next() {
                Ok(None) => break,
                Ok(Some(ListPart::Meta(meta))) => Part::Meta(meta.clone()),
                Ok(Some(ListPart::Item(json))) => Part::Item(json.to_vec()),
                Err(error) => {
                    assert_eq!(decoder.finish(), Err(error.clone()), "an error is for good");
                    return Answer { parts, end: Err(error) };
                }
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
