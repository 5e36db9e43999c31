//! Decoding protobuf gives what decoding JSON gives, and the JSON written is what a server writes.

use informer_protobuf::{Kind, from_slice, scan, to_json, without_managed_fields};
use serde_json::Value;

use crate::files::{self, Pair};

/// JSON without white space between its values.
fn compact(json: &[u8]) -> Vec<u8> {
    let (mut is_in_string, mut is_escaped) = (false, false);
    let mut kept = Vec::new();
    for &byte in json {
        if is_in_string || !byte.is_ascii_whitespace() {
            kept.push(byte);
        }
        is_in_string ^= byte == b'"' && !is_escaped;
        is_escaped = is_in_string && byte == b'\\' && !is_escaped;
    }
    kept
}

fn check(pair: &Pair, kind: Kind) {
    let raw = pair.envelope().raw;
    let expected: Value = serde_json::from_slice(&pair.json).unwrap();
    let value: Value = from_slice(kind, raw).unwrap_or_else(|error| panic!("{}: {error}", pair.name));
    assert_eq!(value, expected, "{}", pair.name);
    let json = to_json(kind, raw).unwrap_or_else(|error| panic!("{}: {error}", pair.name));
    let text = |json: &[u8]| String::from_utf8(json.to_vec()).unwrap();
    assert_eq!(text(&json), text(&compact(&pair.json)), "{}", pair.name);
}

#[test]
fn each_kind_is_the_same_in_protobuf_and_in_json() {
    let Some(pairs) = files::head_or_skip("each_kind_is_the_same_in_protobuf_and_in_json") else { return };
    for pair in &pairs {
        check(pair, pair.kind().unwrap_or_else(|| panic!("{} has no message", pair.name)));
    }
    println!("{} kinds are the same in protobuf and in JSON, byte by byte", pairs.len());
    assert!(pairs.len() > 180);
}

#[test]
fn each_kind_of_earlier_versions_is_the_same() {
    let Some(pairs) = files::earlier_or_skip("each_kind_of_earlier_versions_is_the_same") else { return };
    let (mut same, mut gone) = (0, Vec::new());
    for pair in &pairs {
        match pair.kind() {
            Some(kind) => {
                check(pair, kind);
                same += 1;
            }
            None => gone.push(pair.name.as_str()),
        }
    }
    println!(
        "{same} objects of earlier versions are the same; of kinds that are no more: {}",
        gone.join(", ")
    );
    assert!(same > 500);
}

#[test]
fn metadata_is_that_of_json() {
    let Some(pairs) = files::head_or_skip("metadata_is_that_of_json") else { return };
    for pair in pairs {
        if !pair.kind().unwrap().has_object_metadata() {
            continue;
        }
        let expected: Value = serde_json::from_slice(&pair.json).unwrap();
        let expected = &expected["metadata"];
        let envelope = pair.envelope();
        let metadata = scan(envelope.raw).unwrap_or_else(|error| panic!("{}: {error}", pair.name));
        let text = |name: &str| expected[name].as_str().unwrap_or_default().to_owned();
        assert_eq!(metadata.name, text("name"), "{}", pair.name);
        assert_eq!(metadata.namespace, text("namespace"));
        assert_eq!(metadata.uid, text("uid"));
        assert_eq!(metadata.resource_version, text("resourceVersion"));
        let labels: serde_json::Map<_, _> = metadata
            .labels()
            .map(|label| label.map(|(name, value)| (name.into_owned(), value.into())).unwrap())
            .collect();
        assert_eq!(Value::from(labels), expected["labels"]);
        for (name, value) in expected["annotations"].as_object().unwrap() {
            assert_eq!(metadata.annotation(name).unwrap().as_deref(), value.as_str());
        }
        assert_eq!(metadata.annotation("k8s.io/initial-events-end"), Ok(None));
    }
}

#[test]
fn managed_fields_and_nothing_else_are_taken_out() {
    let Some(pairs) = files::head_or_skip("managed_fields_and_nothing_else_are_taken_out") else { return };
    for pair in pairs {
        let kind = pair.kind().unwrap();
        if !kind.has_object_metadata() {
            continue;
        }
        let mut expected: Value = serde_json::from_slice(&pair.json).unwrap();
        expected["metadata"].as_object_mut().unwrap().remove("managedFields").expect("each field is set");
        let without = without_managed_fields(pair.envelope().raw).into_owned();
        assert_eq!(from_slice::<Value>(kind, &without), Ok(expected), "{}", pair.name);
        assert_eq!(without_managed_fields(&without), without);
    }
}
