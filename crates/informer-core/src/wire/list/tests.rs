//! Lists, split at every byte, and damaged.

use fastrand::Rng;
use serde_json::{Value, json};

use super::*;
use crate::wire::{ApiStatus, scan_object, testing};

/// All parts that a decoder returns for these chunks.
fn decode<'c>(
    decoder: &mut ListDecoder,
    chunks: impl IntoIterator<Item = &'c [u8]>,
) -> Result<(Vec<Vec<u8>>, ListMeta), WireError> {
    let mut items = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        while let Some(part) = decoder.next()? {
            if let ListPart::Item(item) = part {
                items.push(item.to_vec());
            }
        }
    }
    decoder.finish().map(|meta| (items, meta))
}

fn decode_whole(json: &str) -> Result<(Vec<Vec<u8>>, ListMeta), WireError> {
    decode(&mut ListDecoder::new(Codec::Json, Limits::default()), [json.as_bytes()])
}

fn random_list(random: &mut Rng) -> (Value, Vec<u8>) {
    let items: Vec<_> = (0..random.usize(..8)).map(|_| testing::object(random)).collect();
    let mut list = json!({
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": random.u32(1..).to_string(), "continue": testing::text(random)},
        "items": items,
    });
    if random.u8(..8) == 0 {
        list["extra"] = testing::value(random, 4);
    }
    let spaced = random.bool();
    let json = testing::write(random, &list, spaced);
    (list, json)
}

#[test]
fn w16_chunk_borders_anywhere() {
    let mut decoder = ListDecoder::new(Codec::Json, Limits::default());
    for seed in 0..1_000 {
        let mut random = Rng::with_seed(seed);
        let (list, json) = random_list(&mut random);
        let chunks = testing::cut(&mut random, &json);
        let (items, meta) =
            decode(&mut decoder, chunks).unwrap_or_else(|error| panic!("seed {seed}: {error}"));

        let values: Vec<Value> = items.iter().map(|item| serde_json::from_slice(item).unwrap()).collect();
        assert_eq!(Value::from(values), list["items"], "seed {seed}");
        assert!(items.iter().all(|item| item.starts_with(b"{") && item.ends_with(b"}")), "seed {seed}");
        assert_eq!((meta.item_kind(), meta.api_version.as_deref()), (Some("Pod"), Some("v1")), "seed {seed}");
        assert_eq!(list["metadata"]["resourceVersion"], meta.resource_version.to_string(), "seed {seed}");
        assert_eq!(list["metadata"]["continue"], meta.continue_token.unwrap_or_default(), "seed {seed}");
    }
}

#[test]
fn w16_an_empty_chunk_within_an_escape_changes_nothing() {
    let json = br#"{"a":"\"","kind":"PodList","metadata":{"continue":"\""},"items":[{"a":"\""}]}"#;
    for at in 0..json.len() {
        let (before, after) = json.split_at(at);
        let result = decode(&mut ListDecoder::new(Codec::Json, Limits::default()), [before, b"", after]);
        assert_eq!(result.unwrap().0, [br#"{"a":"\""}"#], "at {at}");
    }
}

#[test]
fn garbled_lists_never_panic_and_valid_ones_lose_nothing() {
    for seed in 0..3_000 {
        let mut random = Rng::with_seed(seed);
        let (_, mut json) = random_list(&mut random);
        testing::garble(&mut random, &mut json);
        let limits = Limits { item_bytes: 400 };
        let mut decoder = ListDecoder::new(Codec::Json, limits);
        let ours = decode(&mut decoder, testing::cut(&mut random, &json));
        if let Err(error) = &ours
            && error.skipped().is_none()
        {
            decoder.push(b"{}");
            assert_eq!(decoder.next().as_ref(), Err(error), "seed {seed}");
            assert_eq!(decoder.finish().as_ref(), Err(error), "seed {seed}");
        }
        let Ok((items, _)) = ours else { continue };
        if let Ok(list) = serde_json::from_slice::<Value>(&json) {
            let values: Vec<Value> = items.iter().map(|item| serde_json::from_slice(item).unwrap()).collect();
            let expected = list["items"].as_array().cloned().unwrap_or_default();
            assert_eq!(values, expected, "seed {seed}: {}", String::from_utf8_lossy(&json));
        }
    }
}

#[test]
fn the_metadata_is_known_as_early_as_it_comes() {
    let mut decoder = ListDecoder::new(Codec::Json, Limits::default());
    decoder
        .push(br#"{"kind":"PodList","metadata":{"resourceVersion":"9","remainingItemCount":3},"items":[{}"#);
    let Ok(Some(ListPart::Meta(meta))) = decoder.next() else { panic!("no metadata") };
    assert_eq!((meta.item_kind(), meta.remaining_item_count), (Some("Pod"), Some(3)));
    assert_eq!(decoder.next(), Ok(Some(ListPart::Item(b"{}"))));
    assert_eq!(decoder.next(), Ok(None));

    let (items, meta) =
        decode_whole(r#"{"apiVersion":"x/v1","items":[{}],"kind":"XList","metadata":{"continue":"","resourceVersion":"9"}}"#)
            .unwrap();
    assert_eq!((items.len(), meta.item_kind(), &meta.continue_token), (1, Some("X"), &None));
}

#[test]
fn a_list_without_items_is_empty_only_if_it_says_that_it_is_a_list() {
    for json in [
        r#"{"kind":"PodList","items":null,"metadata":null}"#,
        r#"{"items":[]}"#,
        r#"{"kind":"PodList","metadata":{}}"#,
    ] {
        assert_eq!(decode_whole(json).unwrap().0.len(), 0, "{json}");
    }
    for json in ["{}", r#"{"kind":"Pod","metadata":{"name":"a"}}"#, r#"{"error":"no route"}"#] {
        assert!(decode_whole(json).unwrap_err().is_not_a_list(), "{json}");
    }
}

#[test]
fn l8_a_table_is_refused() {
    for json in [
        r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":[],"rows":["#,
        r#"{"apiVersion":"meta.k8s.io/v1beta1","columnDefinitions":[],"kind":"Table","#,
        r#"{"metadata":{},"rows":["#,
    ] {
        let error = decode_whole(json).unwrap_err();
        assert!(error.is_table(), "{json}: {error}");
        assert!(error.to_string().contains("Table"), "{error}");
    }
    // A Table outside of the group `meta.k8s.io` is an ordinary kind.
    for json in [
        r#"{"kind":"TableList","apiVersion":"furniture.io/v1","items":[{"rows":4}]}"#,
        r#"{"kind":"Table","items":[{}]}"#,
    ] {
        assert_eq!(decode_whole(json).unwrap().0.len(), 1, "{json}");
    }
}

#[test]
fn a_status_is_told_as_such_in_any_order() {
    for json in [
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}"#,
        r#"{"code":410,"kind":"Status","message":"too old","reason":"Expired"}"#,
    ] {
        let error = decode_whole(json).unwrap_err();
        assert!(error.status().is_some_and(ApiStatus::is_expired), "{json}: {error}");
    }
}

#[test]
fn l9_holds_the_chunk_and_one_incomplete_item() {
    let chunk = 16 << 10;
    let item = format!(r#"{{"metadata":{{"name":"a"}},"data":"{}"}}"#, "x".repeat(9_000));
    let list = format!(r#"{{"kind":"PodList","items":[{}]}}"#, vec![item.as_str(); 2_000].join(" , "));
    let mut decoder = ListDecoder::new(Codec::Json, Limits::default());
    let (mut items, mut held) = (0, 0);
    for chunk in list.as_bytes().chunks(chunk) {
        decoder.push(chunk);
        held = held.max(decoder.held_bytes());
        while decoder.next().unwrap().is_some() {
            items += 1;
        }
    }
    assert_eq!(items, 2_000);
    assert!((chunk..=2 * (chunk + item.len())).contains(&held), "{held}");
    assert!(decoder.window.looked_at <= list.len());

    // The memory of a very large item is freed at once, not at the next chunk, which may arrive late.
    let giant = format!(r#"{{"items":[{{"a":"{}"}}"#, "x".repeat(4 << 20));
    let mut decoder = ListDecoder::new(Codec::Json, Limits::default());
    decoder.push(giant.as_bytes());
    assert!(decoder.next().unwrap().is_some());
    assert!(decoder.next().unwrap().is_none());
    assert!(decoder.held_bytes() <= 512 << 10);
}

#[test]
fn w16_no_byte_is_looked_at_twice() {
    let fill = r#"{"a":["\\\"x",{"b":"→"}]},"#;
    for (chunk, bytes) in [(1, 64 << 10), (16 << 10, 4 << 20)] {
        let item = format!(r#"{{"a":[{}1]}}"#, fill.repeat(bytes / fill.len()));
        let text = format!(r#""{}""#, r#"\\→"#.repeat(bytes / 10));
        let number = "1".repeat(bytes / 10);
        let list = format!(r#"{{"x":{text},"y":{number},"items":[{item}]}}"#);
        let mut decoder = ListDecoder::new(Codec::Json, Limits::default());
        for chunk in list.as_bytes().chunks(chunk) {
            decoder.push(chunk);
            while decoder.next().unwrap().is_some() {}
        }
        assert!(decoder.window.looked_at <= list.len());
        assert!(decoder.finish().is_ok());
    }
}

#[test]
fn w16_longer_item_is_a_typed_error() {
    let limits = Limits { item_bytes: 100 };
    let list = |bytes: usize| format!(r#"{{"items":[{{}},{{"a":"{}"}}"#, "x".repeat(bytes - 8));
    for chunk in [1, 7, 1_000] {
        let decode = |bytes| {
            let mut decoder = ListDecoder::new(Codec::Json, limits);
            decode(&mut decoder, list(bytes).as_bytes().chunks(chunk)).unwrap_err()
        };
        assert!(decode(100).is_truncated(), "in chunks of {chunk}");
        assert!(decode(101).is_too_long(), "in chunks of {chunk}");
        assert!(decode(5_000).is_too_long(), "in chunks of {chunk}");
    }
}

#[test]
fn nesting_too_deep_is_a_typed_error() {
    let json = format!(r#"{{"items":[{{"a":{}"#, "[".repeat(600));
    assert!(decode_whole(&json).unwrap_err().is_too_deep());
}

#[test]
fn a_truncated_list_is_a_typed_error_at_every_byte() {
    let json =
        r#" {"kind":"PodList", "metadata":{"resourceVersion":"9"},"items":[{"a":"\"}"}, {}], "x":12 }"#;
    assert!(decode_whole(json).is_ok());
    for end in 0..json.len() {
        assert!(decode_whole(&json[..end]).unwrap_err().is_truncated(), "{}", &json[..end]);
    }
}

#[test]
fn malformed_lists_are_typed_errors() {
    for json in [
        r#"{"items":[]} x"#,
        r#"{"items":[]}{"items":[]}"#,
        r#"{"items":[],}"#,
        r#"{"items":[{},]}"#,
        r#"{"items":[,{}]}"#,
        r#"{"items":[{}{}]}"#,
        r#"{"items":[{}:{}]}"#,
        r#"{"items":[{}}"#,
        r#"{"items":{}}"#,
        r#"{"items":"null"}"#,
        r#"{"items":[],"items":[]}"#,
        r#"{"items"}"#,
        r#"{"items":}"#,
        r#"{items:[]}"#,
        r#"{,"items":[]}"#,
        r#"{"kind":["PodList"],"items":[]}"#,
        r#"{"metadata":[],"items":[]}"#,
        r#"{"metadata":{"resourceVersion":9},"items":[]}"#,
        "[]",
        "null",
        "<html>",
    ] {
        let error = decode_whole(json).unwrap_err();
        assert!(error.is_malformed(), "{json}: {error}");
    }
    // An item that is not an object must not fail the others.
    assert_eq!(
        decode_whole(r#"{"items":[null, 1 ,"x",[],{}]}"#).unwrap().0,
        [&b"null"[..], b"1", br#""x""#, b"[]", b"{}"]
    );
}

#[test]
fn w16_a_longer_item_is_left_out_where_its_key_can_be_told() {
    let limits = Limits { item_bytes: 300 };
    let item = |name: &str, bytes: usize| {
        let metadata = format!(r#"{{"name":"{name}","namespace":"shop","labels":null}}"#);
        format!(r#"{{"metadata":{metadata},"text":"{}","more":[{{}}]}}"#, r#"} \" ] \\"#.repeat(bytes / 10))
    };
    for (bytes, chunk) in [(300, 1), (300, 7), (9_000, 1), (9_000, 250), (9_000, 100_000), (1 << 20, 4_096)] {
        let items = [item("a", 0), item("b", bytes), item("c", 0), item("d", bytes), item("e", bytes)];
        let list =
            format!(r#"{{"items":[{}],"metadata":{{"resourceVersion":"9"}}}}"#, items.join(" ,\n")).repeat(2);
        let (page, end) = list.split_at(list.len() / 2);
        assert_eq!(page, end);
        let mut decoder = ListDecoder::new(Codec::Json, limits);
        for page in [page, end] {
            let mut told = Vec::new();
            for piece in page.as_bytes().chunks(chunk) {
                decoder.push(piece);
                loop {
                    match decoder.next() {
                        Ok(None) => break,
                        Ok(Some(ListPart::Item(json))) => {
                            assert!(json.len() <= 300);
                            told.push(scan_object(json).unwrap().key().unwrap().to_string());
                        }
                        Ok(Some(ListPart::Meta(_))) => {}
                        Err(error) => {
                            assert!(error.is_too_long());
                            told.push(format!("not {}", error.skipped().unwrap()));
                        }
                    }
                }
            }
            let all = ["shop/a", "not shop/b", "shop/c", "not shop/d", "not shop/e"];
            assert_eq!(told, all, "{bytes} bytes in chunks of {chunk}");
            assert_eq!(decoder.finish().unwrap().resource_version, "9".into());
        }
    }
}

#[test]
fn w16_a_longer_item_that_nobody_can_name_is_an_error_of_the_list() {
    let decode = |item: &str| {
        let list = format!(r#"{{"items":[{item}]}}"#);
        let mut decoder = ListDecoder::new(Codec::Json, Limits { item_bytes: 200 });
        decode(&mut decoder, [list.as_bytes()]).unwrap_err()
    };
    let long = "x".repeat(200);
    // The key comes after the limit, or may be incomplete at the limit.
    for item in [
        format!(r#"{{"data":"{long}","metadata":{{"name":"a","namespace":"shop"}}}}"#),
        format!(r#"{{"metadata":{{"name":"a","annotations":{{"a":"{long}"}},"namespace":"shop"}}}}"#),
        format!(r#"{{"metadata":{{"name":"{long}","namespace":"shop"}}}}"#),
    ] {
        let error = decode(&item);
        assert!(error.is_too_long() && error.skipped().is_none(), "{item}: {error}");
    }
    let cut = format!(r#"{{"items":[{{"metadata":{{"name":"a"}},"data":"{long}"#);
    let mut decoder = ListDecoder::new(Codec::Json, Limits { item_bytes: 100 });
    decoder.push(cut.as_bytes());
    assert_eq!(decoder.next().unwrap_err().skipped().unwrap().as_str(), "a");
    assert!(decoder.next().unwrap().is_none());
    assert!(decoder.finish().unwrap_err().is_truncated());
}

#[test]
fn w16_a_longer_item_is_not_held() {
    let mut decoder = ListDecoder::new(Codec::Json, Limits { item_bytes: 64 << 10 });
    decoder.push(br#"{"items":[{"metadata":{"name":"a"},"data":""#);
    let chunk = [b'x'; 16 << 10];
    let mut skipped = 0;
    for _ in 0..1_000 {
        decoder.push(&chunk);
        loop {
            match decoder.next() {
                Ok(None) => break,
                Ok(Some(part)) => panic!("{part:?}"),
                Err(error) => skipped += usize::from(error.skipped().is_some()),
            }
        }
        assert!(decoder.held_bytes() <= 256 << 10, "{}", decoder.held_bytes());
    }
    decoder.push(br#""}]}"#);
    assert!(decoder.next().unwrap().is_none());
    assert_eq!((skipped, decoder.finish().is_ok()), (1, true));
}

#[test]
fn w16_what_is_left_out_does_not_depend_on_the_chunks_nor_on_what_is_garbled() {
    let mut left_out = 0;
    for seed in 0..3_000 {
        let mut random = Rng::with_seed(seed);
        let (list, mut json) = random_list(&mut random);
        let is_garbled = random.bool();
        if is_garbled {
            testing::garble(&mut random, &mut json);
        }
        let limits = Limits { item_bytes: random.usize(..json.len().max(2)) };
        let told = |chunks: Vec<&[u8]>| {
            let mut decoder = ListDecoder::new(Codec::Json, limits);
            let mut told = Vec::new();
            for chunk in chunks {
                decoder.push(chunk);
                loop {
                    told.push(match decoder.next() {
                        Ok(None) => break,
                        Ok(Some(ListPart::Item(item))) => Ok(item.to_vec()),
                        Ok(Some(ListPart::Meta(_))) => continue,
                        Err(error) if error.skipped().is_some() => Err(error),
                        Err(error) => return (told, Err(error)),
                    });
                }
            }
            let end = decoder.finish().map(drop);
            (told, end)
        };
        let whole = told(vec![&json]);
        assert_eq!(told(testing::cut(&mut random, &json).into_iter().collect()), whole, "seed {seed}");
        if !is_garbled && whole.1.is_ok() {
            assert_eq!(whole.0.len(), list["items"].as_array().unwrap().len(), "seed {seed}");
        }
        left_out += whole.0.iter().filter(|part| part.is_err()).count();
    }
    assert!(left_out > 100, "{left_out}");
}
