//! Watches, split at every byte, and damaged.

use fastrand::Rng;
use serde_json::{Value, json};

use super::json::is_blank;
use super::*;
use crate::ObjectKey;
use crate::wire::{scan_object, testing};

/// Events as serde reads them: type and object; none for an event that was refused.
type Events = Vec<Option<(EventType, Value)>>;

fn decode<'c>(
    decoder: &mut WatchDecoder,
    chunks: impl IntoIterator<Item = &'c [u8]>,
) -> Result<Events, WireError> {
    let read =
        |frame: WatchFrame<'_>| (frame.kind, serde_json::from_slice(frame.object).unwrap_or(Value::Null));
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        while let Some(event) = decoder.next()? {
            events.push(event.ok().map(read));
        }
    }
    events.extend(decoder.finish()?.map(|frame| Some(read(frame))));
    Ok(events)
}

const TYPES: [(&str, EventType); 5] = [
    ("ADDED", EventType::Added),
    ("MODIFIED", EventType::Modified),
    ("DELETED", EventType::Deleted),
    ("BOOKMARK", EventType::Bookmark),
    ("ERROR", EventType::Error),
];

fn random_stream(random: &mut Rng) -> (Events, Vec<u8>) {
    let (mut events, mut stream) = (Vec::new(), Vec::new());
    for _ in 0..random.usize(..6) {
        let (name, kind) = *random.choice(&TYPES).unwrap();
        let object = testing::object(random);
        // White space, but for line ends.
        let spaced = random.bool();
        let mut line = testing::write(random, &json!({"type": name, "object": object}), spaced);
        line.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
        stream.extend_from_slice(&line);
        stream.extend_from_slice(random.choice(&[&b"\n"[..], b"\r\n", b"\n\n", b"\n \r\n"]).unwrap());
        events.push(Some((kind, object)));
    }
    if random.bool() {
        stream.truncate(stream.trim_ascii_end().len());
    }
    (events, stream)
}

#[test]
fn w16_chunk_borders_anywhere() {
    for seed in 0..1_000 {
        let mut random = Rng::with_seed(seed);
        let (expected, stream) = random_stream(&mut random);
        let mut decoder = WatchDecoder::new(Codec::Json, Limits::default());
        let events = decode(&mut decoder, testing::cut(&mut random, &stream));
        assert_eq!(events, Ok(expected), "seed {seed}");
        assert!(decoder.window.looked_at <= stream.len(), "seed {seed}");
    }
}

#[test]
fn w8_a_garbled_event_is_skipped_and_the_rest_goes_on() {
    for seed in 0..4_000 {
        let mut random = Rng::with_seed(seed);
        let event = json!({"type": "ADDED", "object": testing::object(&mut random)});
        let mut line = testing::write(&mut random, &event, false);
        testing::garble(&mut random, &mut line);
        let lines = line.split(|&byte| byte == b'\n').filter(|line| !is_blank(line)).count();
        let good = br#"{"type":"MODIFIED","object":{"metadata":{"name":"a"}}}"#;
        let stream = [good, &b"\n"[..], &line, b"\n", good, b"\n"].concat();
        let events = decode(
            &mut WatchDecoder::new(Codec::Json, Limits::default()),
            testing::cut(&mut random, &stream),
        )
        .unwrap();
        let good = Some((EventType::Modified, json!({"metadata": {"name": "a"}})));
        assert_eq!(events.len(), 2 + lines, "seed {seed}");
        assert_eq!((events.first(), events.last()), (Some(&good), Some(&good)), "seed {seed}");
        if lines == 1
            && let Ok(event) = serde_json::from_slice::<Value>(&line)
        {
            let (ours, object) = (events[1].as_ref(), &event["object"]);
            let is_good = event["type"] == "ADDED" && object.is_object();
            // Of a member that the damage duplicated, the decoder takes the first one and serde the last.
            let doubled = [&br#""object""#[..], br#""type""#]
                .iter()
                .any(|name| line.windows(name.len()).filter(|window| window == name).count() > 1);
            assert!(
                doubled || ours.map(|(_, object)| object) == is_good.then_some(object),
                "seed {seed}: {}",
                String::from_utf8_lossy(&line)
            );
        }
    }
}

#[test]
fn w8_a_bad_event_says_whose_it_was_where_it_can() {
    for (line, key) in [
        (
            r#"{"type":"ADDED","object":{"metadata":{"name":"cart","namespace":"shop"},"spec":{"#,
            Some("shop/cart"),
        ),
        (r#"{"type":"ADDED","object":{"metadata":{"name":"cart","namespace":"shop"}}}}"#, Some("shop/cart")),
        (r#"{"type":"SECRET","object":{"metadata":{"name":"cart"}}}"#, Some("cart")),
        (r#"{"object":{"metadata":{"name":"cart"}}}"#, Some("cart")),
        (r#"{"object":{"metadata":{"name":"cart"}},"type":5}"#, Some("cart")),
        (r#"{"type":"ADDED","object":null}"#, None),
        (r#"{"type":"ADDED"}"#, None),
        (r#"{"type":"ADDED","object":{"metadata":{"name":"cart"#, None),
        ("<html>", None),
        ("[]", None),
    ] {
        let mut decoder = WatchDecoder::new(Codec::Json, Limits::default());
        decoder.push(format!("{line}\n").as_bytes());
        let error = decoder.next().unwrap().unwrap().unwrap_err();
        assert_eq!(error.key().map(ObjectKey::as_str), key, "{line}");
        assert!(!error.to_string().contains("SECRET"), "{error}");
        assert!(decoder.finish().unwrap().is_none());
    }
}

#[test]
fn w16_events_of_16_mib_decode() {
    let limits = Limits::default();
    let shell = r#"{"type":"ADDED","object":{"a":""}}"#;
    let event = shell.replace(r#""""#, &format!(r#""{}""#, "x".repeat(limits.item_bytes - shell.len())));
    assert_eq!(event.len(), limits.item_bytes);
    let mut decoder = WatchDecoder::new(Codec::Json, limits);
    for chunk in event.as_bytes().chunks(16 << 10) {
        assert!(decoder.next().unwrap().is_none());
        decoder.push(chunk);
    }
    decoder.push(b"\n");
    assert_eq!(
        decoder.next().unwrap().unwrap().unwrap().object.len(),
        event.len() - r#"{"type":"ADDED","object":}"#.len()
    );
    assert!(decoder.window.looked_at <= event.len());
    // The memory is freed before the next event arrives.
    assert!(decoder.next().unwrap().is_none());
    assert!(decoder.held_bytes() <= 512 << 10);
}

#[test]
fn w16_longer_frame_is_a_typed_error() {
    let limits = Limits { item_bytes: 100 };
    for chunk in [1, 30, 1_000] {
        for end in ["", "\n"] {
            let stream = format!("{{}}\n{{\"type\":\"{}{end}", "x".repeat(100));
            let mut decoder = WatchDecoder::new(Codec::Json, limits);
            let error = decode(&mut decoder, stream.as_bytes().chunks(chunk)).unwrap_err();
            assert!(error.is_too_long(), "in chunks of {chunk}");
            assert_eq!(decoder.next().unwrap_err(), error);
            assert_eq!(decoder.finish().unwrap_err(), error);
        }
    }
}

#[test]
fn a_stream_cut_within_an_event_is_truncated() {
    let event = r#"{"type":"ADDED","object":{"a":"}}"}}"#;
    for end in 1..event.len() {
        let mut decoder = WatchDecoder::new(Codec::Json, Limits::default());
        let error = decode(&mut decoder, [&event.as_bytes()[..end]]).unwrap_err();
        assert!(error.is_truncated(), "{}", &event[..end]);
    }
    let events = decode(&mut WatchDecoder::new(Codec::Json, Limits::default()), [event.as_bytes()]).unwrap();
    assert_eq!(events, [Some((EventType::Added, json!({"a": "}}"})))]);
}

#[test]
fn no_content_goes_to_logs() {
    let mut decoder = WatchDecoder::new(Codec::Json, Limits::default());
    decoder.push(b"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"x\"},\"data\":\"hunter2\"}}\n");
    let before = format!("{decoder:?}");
    let frame = decoder.next().unwrap().unwrap().unwrap();
    assert_eq!(format!("{frame:?}"), "Added (42 bytes)");
    assert_eq!(format!("{:?}", scan_object(frame.object).unwrap()), "/x@");
    assert!(!before.contains("hunter2") && !before.contains("104, 117"), "{before}");
}

/// The results of a decoder that skips: the keys, `not key` for errors without one, and the end of the stream.
fn told_skipping(stream: &str, chunk: usize) -> (Vec<String>, Result<(), WireError>) {
    let mut decoder = WatchDecoder::new(Codec::Json, Limits { item_bytes: 300 });
    let mut told = Vec::new();
    for piece in stream.as_bytes().chunks(chunk) {
        decoder.push(piece);
        loop {
            match decoder.next() {
                Ok(None) => break,
                Ok(Some(Ok(frame))) => {
                    told.push(scan_object(frame.object).unwrap().key().unwrap().to_string())
                }
                Ok(Some(Err(error))) => told.push(format!("not {}", error.key().unwrap())),
                Err(error) => return (told, Err(error)),
            }
        }
        assert!(decoder.held_bytes() <= 2 * (300 + chunk).max(8), "{} held", decoder.held_bytes());
    }
    (told, decoder.finish().map(drop))
}

fn event(kind: &str, name: &str, bytes: usize) -> String {
    let object = format!(r#"{{"metadata":{{"name":"{name}"}},"data":"{}"}}"#, "x".repeat(bytes));
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

#[test]
fn w16_a_longer_event_is_left_out_where_its_key_can_be_told() {
    for (bytes, chunk) in [(300, 1), (300, 7), (9_000, 1), (9_000, 250), (9_000, 100_000), (1 << 20, 4_096)] {
        let stream = [
            event("ADDED", "a", 0),
            event("ADDED", "b", bytes),
            event("MODIFIED", "b", bytes),
            event("DELETED", "a", 0),
            event("MODIFIED", "c", bytes),
            event("ADDED", "d", 0),
        ];
        let (told, end) = told_skipping(&stream.concat(), chunk);
        assert_eq!(told, ["a", "not b", "not b", "a", "not c", "d"], "{bytes} bytes in chunks of {chunk}");
        assert_eq!(end, Ok(()));
    }
}

#[test]
fn w16_a_longer_event_that_cannot_be_left_out_is_an_error_of_the_stream() {
    let long = "x".repeat(300);
    for event in [
        // If a deletion were skipped, the object would stay in the cache for ever.
        event("DELETED", "a", 300),
        event("BOOKMARK", "a", 300),
        event("ERROR", "a", 300),
        format!(
            "{{\"object\":{{\"metadata\":{{\"name\":\"a\"}},\"data\":\"{long}\"}},\"type\":\"ADDED\"}}\n"
        ),
        format!(
            "{{\"type\":\"ADDED\",\"object\":{{\"data\":\"{long}\",\"metadata\":{{\"name\":\"a\"}}}}}}\n"
        ),
        format!("{long}{long}\n"),
    ] {
        for chunk in [1, 50, 1_000] {
            let (told, end) = told_skipping(&event, chunk);
            assert!(told.is_empty() && end.unwrap_err().is_too_long(), "{event}");
        }
    }
    let (told, end) = told_skipping(event("ADDED", "a", 300).trim_end(), 50);
    assert!(told == ["not a"] && end.unwrap_err().is_truncated());
}
