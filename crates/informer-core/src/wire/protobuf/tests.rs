//! Lists and watches in protobuf: whole, in chunks, truncated and damaged.

use super::*;
use crate::wire::{Codec, EventType, Limits, ListDecoder, ListPart, WatchDecoder, WireError};

fn number(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            bytes.push(low & 0x7f);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn field(of: u64, value: &[u8]) -> Vec<u8> {
    [number(of << 3 | 2), number(value.len() as u64), value.to_vec()].concat()
}

fn pod(name: &str, version: &str) -> Vec<u8> {
    let metadata = [field(1, name.as_bytes()), field(3, b"shop"), field(6, version.as_bytes())].concat();
    [field(1, &metadata), field(2, &[]), field(3, &[])].concat()
}

fn envelope(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let types = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), field(1, &types), field(2, message), field(3, &[]), field(4, &[])].concat()
}

fn list(items: &[Vec<u8>]) -> Vec<u8> {
    let metadata = [field(1, &[]), field(2, b"42"), field(3, b"more"), number(4 << 3), number(7)].concat();
    let items: Vec<u8> = items.iter().flat_map(|item| field(2, item)).collect();
    envelope("v1", "PodList", &[field(1, &metadata), items].concat())
}

fn event(kind: &str, object: &[u8]) -> Vec<u8> {
    let event = [field(1, kind.as_bytes()), field(2, &field(1, object))].concat();
    [u32::try_from(event.len()).unwrap().to_be_bytes().to_vec(), event].concat()
}

/// All items, and how the list ended.
fn read(decoder: &mut ListDecoder, body: &[u8], chunk: usize) -> (Vec<Vec<u8>>, Option<WireError>) {
    let mut items = Vec::new();
    for chunk in body.chunks(chunk) {
        decoder.push(chunk);
        loop {
            match decoder.next() {
                Ok(None) => break,
                Ok(Some(ListPart::Item(item))) => items.push(item.to_vec()),
                Ok(Some(ListPart::Meta(meta))) => assert_eq!(meta.kind.as_deref(), Some("PodList")),
                Err(error) if error.skipped().is_some() => items.push(b"skipped".to_vec()),
                Err(error) => return (items, Some(error)),
            }
        }
    }
    (items, None)
}

#[test]
fn w16_a_list_is_the_same_in_chunks_of_any_size() {
    let pods = [pod("cart", "7"), pod("till", "8"), Vec::new()];
    let body = list(&pods);
    for chunk in 1..=body.len() {
        let mut decoder = ListDecoder::new(Codec::Protobuf, Limits::default());
        // The second page is read by the same decoder.
        for _ in 0..2 {
            let (items, error) = read(&mut decoder, &body, chunk);
            assert_eq!((&items[..], error), (&pods[..], None), "chunks of {chunk}");
            let meta = decoder.finish().unwrap();
            assert_eq!(meta.resource_version, "42".into());
            assert_eq!((meta.item_kind(), meta.api_version.as_deref()), (Some("Pod"), Some("v1")));
            assert_eq!((meta.continue_token.as_deref(), meta.remaining_item_count), (Some("more"), Some(7)));
        }
    }
}

#[test]
fn a_list_that_is_cut_off_is_truncated_at_every_byte() {
    let body = list(&[pod("cart", "7"), pod("till", "8")]);
    // The last two fields of the envelope are empty and may be absent.
    for length in 0..body.len() - 4 {
        let mut decoder = ListDecoder::new(Codec::Protobuf, Limits::default());
        let (_, error) = read(&mut decoder, &body[..length], 7);
        assert_eq!(error, None, "{length} bytes");
        assert!(decoder.finish().unwrap_err().is_truncated(), "{length} bytes");
        assert!(decoder.finish().is_err());
    }
}

#[test]
fn what_is_no_list_is_a_typed_error() {
    let wrong = |body: &[u8]| {
        let mut decoder = ListDecoder::new(Codec::Protobuf, Limits::default());
        read(&mut decoder, body, 5).1.unwrap()
    };
    assert!(wrong(&envelope("meta.k8s.io/v1", "Table", b"")).is_table());
    assert!(wrong(&envelope("v1", "Pod", &pod("cart", "7"))).is_not_a_list());
    assert!(wrong(b"{\"kind\":\"PodList\"}").is_malformed());
    // An item that claims to be longer than the list.
    let claims = envelope("v1", "PodList", &[number(2 << 3 | 2), number(1 << 40)].concat());
    assert!(wrong(&claims).is_malformed());
    // Groups.
    assert!(wrong(&envelope("v1", "PodList", &[0x0b])).is_malformed());
    let message = [field(3, b"no"), field(4, b"Forbidden"), number(6 << 3), number(403)].concat();
    let status = wrong(&envelope("v1", "Status", &message)).status().cloned().unwrap();
    assert_eq!((status.code, status.reason.as_str(), status.message.as_str()), (403, "Forbidden", "no"));
}

#[test]
fn w16_a_longer_item_is_left_out_alone() {
    let long = [pod("long", "9"), field(9, &[0; 500])].concat();
    let body = list(&[pod("cart", "7"), long.clone(), pod("till", "8")]);
    for chunk in [1, 3, 64, body.len()] {
        let limits = Limits { item_bytes: 200 };
        let mut decoder = ListDecoder::new(Codec::Protobuf, limits);
        let (items, error) = read(&mut decoder, &body, chunk);
        assert_eq!((items, error), (vec![pod("cart", "7"), b"skipped".to_vec(), pod("till", "8")], None));
        decoder.finish().unwrap();

        // The key comes after the limit.
        let nameless = list(&[[field(9, &[0; 500]), pod("long", "9")].concat()]);
        let mut decoder = ListDecoder::new(Codec::Protobuf, limits);
        let (items, error) = read(&mut decoder, &nameless, chunk);
        assert!(items.is_empty() && error.unwrap().is_too_long());
    }
}

#[test]
fn w16_an_item_as_long_as_the_limit_is_an_item() {
    let item = pod("cart", "7");
    let body = list(&[item.clone(), item.clone()]);
    for chunk in [1, body.len()] {
        let read =
            |item_bytes| read(&mut ListDecoder::new(Codec::Protobuf, Limits { item_bytes }), &body, chunk);
        assert_eq!(read(item.len()), (vec![item.clone(), item.clone()], None));
        assert_eq!(read(item.len() - 1), (vec![b"skipped".to_vec(); 2], None));
    }
}

#[test]
fn an_error_says_at_which_byte_it_is() {
    let message = field(2, &pod("cart", "7"));
    let body = envelope("v1", "PodList", &[message.clone(), vec![0x0b]].concat());
    // Of the envelope, the last two fields are behind the group: 2 bytes each, and the byte of the group itself.
    let at = body.len() - 5;
    for chunk in [1, 7, body.len()] {
        let error = read(&mut ListDecoder::new(Codec::Protobuf, Limits::default()), &body, chunk).1.unwrap();
        assert!(error.to_string().ends_with(&format!("(byte {at})")), "{error}, not at {at}");
    }
}

#[test]
fn s2_only_the_annotation_true_ends_the_initial_events() {
    let bookmark = |version: &str, end: Option<&str>| {
        let annotation = end.map(|end| {
            field(12, &[field(1, b"k8s.io/initial-events-end"), field(2, end.as_bytes())].concat())
        });
        let metadata = [field(6, version.as_bytes()), annotation.unwrap_or_default()].concat();
        scan_protobuf_bookmark(&envelope("v1", "Pod", &field(1, &metadata)))
    };
    for (end, ends) in [(Some("true"), true), (Some("false"), false), (None, false)] {
        let bookmark = bookmark("9", end).unwrap();
        assert_eq!((bookmark.resource_version, bookmark.initial_events_end), ("9".into(), ends), "{end:?}");
    }
    assert!(bookmark("", Some("true")).is_err());
}

#[test]
fn w8_an_object_whose_metadata_is_damaged_is_named_where_it_can_be() {
    // Behind the namespace comes what is no field.
    let metadata = [field(1, b"cart"), field(3, b"shop"), vec![0x0b]].concat();
    let damaged = scan_protobuf(&field(1, &metadata)).unwrap_err();
    assert_eq!(damaged.key().map(ToString::to_string).as_deref(), Some("shop/cart"));
    let nameless = scan_protobuf(&field(1, &[field(3, b"shop"), vec![0x0b]].concat())).unwrap_err();
    assert_eq!(nameless.key(), None);
}

#[test]
fn l9_a_list_is_not_held() {
    let body = list(&vec![[pod("cart", "7"), field(9, &[0; 5_000])].concat(); 1_000]);
    let mut decoder = ListDecoder::new(Codec::Protobuf, Limits::default());
    let mut items = 0;
    for chunk in body.chunks(16 << 10) {
        decoder.push(chunk);
        while let Some(part) = decoder.next().unwrap() {
            items += usize::from(matches!(part, ListPart::Item(_)));
        }
        assert!(decoder.held_bytes() <= 64 << 10, "{}", decoder.held_bytes());
    }
    assert_eq!(items, 1_000);
}

#[test]
fn w16_a_watch_is_the_same_in_chunks_of_any_size() {
    let pod = envelope("v1", "Pod", &pod("cart", "7"));
    let body =
        [event("ADDED", &pod), event("what", &pod), event("DELETED", &pod), event("ERROR", b"")].concat();
    for chunk in 1..=body.len() {
        let mut decoder = WatchDecoder::new(Codec::Protobuf, Limits::default());
        let mut kinds = Vec::new();
        for chunk in body.chunks(chunk) {
            decoder.push(chunk);
            while let Some(frame) = decoder.next().unwrap() {
                if let Ok(frame) = &frame
                    && frame.kind != EventType::Error
                {
                    assert_eq!(frame.object, pod);
                }
                kinds.push(frame.ok().map(|frame| frame.kind));
            }
        }
        let expected = [Some(EventType::Added), None, Some(EventType::Deleted), Some(EventType::Error)];
        assert_eq!(kinds, expected, "chunks of {chunk}");
        decoder.finish().unwrap();
    }
    for length in [1, 3, 5, body.len() - 1] {
        let mut decoder = WatchDecoder::new(Codec::Protobuf, Limits::default());
        decoder.push(&body[..length]);
        while decoder.next().unwrap().is_some() {}
        assert!(decoder.finish().unwrap_err().is_truncated(), "{length} bytes");
    }
}

#[test]
fn w16_a_longer_event_is_left_out_alone_unless_it_deletes() {
    let long = envelope("v1", "Pod", &[pod("long", "9"), field(9, &[0; 500])].concat());
    let short = envelope("v1", "Pod", &pod("cart", "7"));
    let limits = Limits { item_bytes: 200 };
    let body = [event("ADDED", &long), event("MODIFIED", &short)].concat();
    for chunk in [1, 10, body.len()] {
        let mut decoder = WatchDecoder::new(Codec::Protobuf, limits);
        let mut seen = Vec::new();
        for chunk in body.chunks(chunk) {
            decoder.push(chunk);
            while let Some(frame) = decoder.next().unwrap() {
                seen.push(frame.map(|frame| frame.kind).map_err(|error| error.key().unwrap().to_string()));
            }
        }
        assert_eq!(seen, [Err("shop/long".to_owned()), Ok(EventType::Modified)]);
        decoder.finish().unwrap();
    }
    let mut decoder = WatchDecoder::new(Codec::Protobuf, limits);
    decoder.push(&event("DELETED", &long));
    assert!(decoder.next().unwrap_err().is_too_long());
}
