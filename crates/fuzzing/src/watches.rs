//! The watch decoder: any bytes in any chunks.

use fastrand::Rng;
use informer_core::internals::{Codec, EventType, WatchDecoder, WatchFrame, WireError, scan_bookmark};
use informer_core::wire::ScanError;
use serde_json::{Value, json};

use crate::body::Body;
use crate::{json, oracle};

pub(crate) const TYPES: [(&str, EventType); 5] = [
    ("ADDED", EventType::Added),
    ("MODIFIED", EventType::Modified),
    ("DELETED", EventType::Deleted),
    ("BOOKMARK", EventType::Bookmark),
    ("ERROR", EventType::Error),
];

/// Everything that a decoder says.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) events: Vec<Result<Event, ScanError>>,
    pub(crate) end: Result<Option<Event>, WireError>,
}

pub(crate) type Event = (EventType, Vec<u8>);

/// The answer does not depend on the chunks, is serde_json's line by line where that has one, and takes no more than
/// its window.
pub fn run(input: &[u8]) {
    let body = Body::read(input);
    let answer = decode(Codec::Json, &body, &[body.bytes]);
    assert_eq!(decode(Codec::Json, &body, &body.chunks()), answer, "in chunks, and whole");

    let limit = body.limits.item_bytes;
    let mut events = answer.events.into_iter().peekable();
    let mut lines: Vec<&[u8]> = body.bytes.split(|&byte| byte == b'\n').collect();
    let last = lines.pop().unwrap_or_default();
    let is_blank = |line: &[u8]| line.iter().all(u8::is_ascii_whitespace);
    for line in lines.into_iter().chain(Some(last).filter(|last| last.len() > limit)) {
        match events.next_if(|_| line.len() > limit || !is_blank(line)) {
            Some(event) if line.len() <= limit => check(line, event.as_ref().ok()),
            Some(event) => check_skipped(line, &event.expect_err("it is too long")),
            None if line.len() <= limit => assert!(is_blank(line), "an event per line"),
            None => {
                assert!(answer.end.is_err_and(|error| error.is_too_long()));
                return;
            }
        }
    }
    assert_eq!(events.next(), None, "an event per line");
    assert_eq!(
        matches!(&answer.end, Ok(None)),
        is_blank(last),
        "a body ends with nothing, an event or a part of one"
    );
    match answer.end.transpose() {
        Some(Err(error)) if last.len() > limit => assert!(error.is_truncated()),
        Some(event) => check(last, event.as_ref().ok()),
        None => {}
    }
}

/// Whether an event that is too long may be left out: a deletion needs more than its key.
fn check_skipped(line: &[u8], error: &ScanError) {
    let key = error.key().expect("a key");
    assert!(matches!(error.event(), Some(EventType::Added | EventType::Modified)));
    let Some(value) = oracle::plain_json(line) else { return };
    assert_eq!(error.event().map(EventType::name), value["type"].as_str());
    oracle::check_key(key, &value["object"]);
}

/// Whether a line was decoded correctly.
fn check(line: &[u8], event: Option<&Event>) {
    if let Some((kind, object)) = event {
        oracle::check_object(object);
        if *kind == EventType::Bookmark {
            let _ = scan_bookmark(object);
        }
    }
    let Some(value) = oracle::plain_json(line) else { return };
    let kind = TYPES.iter().find(|(name, _)| value["type"] == *name);
    let expected = kind.filter(|_| value["object"].is_object()).map(|(_, kind)| (*kind, &value["object"]));
    let event = event.map(|(kind, object)| (*kind, serde_json::from_slice::<Value>(object).unwrap()));
    assert_eq!(event.as_ref().map(|(kind, object)| (*kind, object)), expected);
}

/// Reads a watch in these chunks.
pub(crate) fn decode(codec: Codec, body: &Body<'_>, chunks: &[&[u8]]) -> Answer {
    let most = body.holds_at_most_of(body.limits.item_bytes, chunks);
    let mut decoder = WatchDecoder::new(codec, body.limits);
    let own = |frame: WatchFrame<'_>| (frame.kind, frame.object.to_vec());
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        assert!(decoder.held_bytes() <= most, "{} bytes held, {most} allowed", decoder.held_bytes());
        loop {
            events.push(match decoder.next() {
                Ok(None) => break,
                Ok(Some(event)) => event.map(own),
                Err(error) => {
                    assert_eq!(decoder.finish(), Err(error.clone()), "an error is for good");
                    return Answer { events, end: Err(error) };
                }
            });
        }
    }
    Answer { events, end: decoder.finish().map(|frame| frame.map(own)) }
}

/// A few events, cut at random.
pub fn example(seed: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(seed);
    let mut stream = Vec::new();
    for _ in 0..random.usize(1..4) {
        let (name, _) = TYPES[random.usize(..TYPES.len())];
        let event = json!({"type": name, "object": json::object(&mut random)});
        stream.extend(json::write(&mut random, &event, false));
        stream.push(b'\n');
    }
    if random.bool() {
        stream.pop();
    }
    Body::write(&mut random, &stream)
}
