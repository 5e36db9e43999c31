//! Compares the scanned metadata with what serde decodes.

use std::collections::BTreeMap;

use fastrand::Rng;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::wire::testing;

/// The metadata that serde decodes. Unlike the scanner, serde fails on a duplicate member.
#[derive(Debug, PartialEq, Deserialize)]
struct Oracle {
    kind: Option<String>,
    #[serde(rename = "apiVersion")]
    api_version: Option<String>,
    metadata: OracleMetadata,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OracleMetadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    labels: Option<BTreeMap<String, Option<String>>>,
}

/// The same metadata from the scanner.
fn scan(json: &[u8]) -> Result<Oracle, ScanError> {
    let scanned = scan_object(json)?;
    scanned.key()?;
    let types = scanned.type_meta()?;
    let labels = scanned.labels()?;
    let own = |text: &Option<Cow<'_, str>>| text.as_deref().map(str::to_owned);
    Ok(Oracle {
        kind: own(&types.kind),
        api_version: own(&types.api_version),
        metadata: OracleMetadata {
            name: Some(scanned.name().to_owned()),
            namespace: own(&scanned.namespace),
            uid: own(&scanned.uid),
            resource_version: own(&scanned.resource_version),
            labels: Some(labels.iter().map(|(name, value)| (name.into(), Some(value.into()))).collect()),
        },
    })
}

/// To Go, `null`, a missing member and the zero value mean the same.
fn like_go(mut oracle: Oracle) -> Oracle {
    let labels = oracle.metadata.labels.take().unwrap_or_default();
    oracle.metadata.labels =
        Some(labels.into_iter().map(|(name, value)| (name, Some(value.unwrap_or_default()))).collect());
    oracle
}

fn is_ok_by_serde(oracle: &Oracle) -> bool {
    let part = |text: &Option<String>| !text.as_deref().unwrap_or_default().contains('/');
    let OracleMetadata { name, namespace, .. } = &oracle.metadata;
    name.as_ref().is_some_and(|name| !name.is_empty()) && part(name) && part(namespace)
}

/// The offset at which serde stopped.
fn offset(error: &serde_json::Error, json: &[u8]) -> usize {
    let lines = json.split_inclusive(|&byte| byte == b'\n').take(error.line().saturating_sub(1));
    lines.map(<[u8]>::len).sum::<usize>() + error.column()
}

#[test]
fn reads_what_serde_reads() {
    for seed in 0..2_000 {
        let mut random = Rng::with_seed(seed);
        let object = testing::object(&mut random);
        let spaced = random.bool();
        let json = testing::write(&mut random, &object, spaced);
        let expected: Oracle = serde_json::from_slice(&json).unwrap();
        assert_eq!(scan(&json), Ok(like_go(expected)), "seed {seed}");

        let cut: Value = serde_json::from_slice(&without_managed_fields(&json)).unwrap();
        let mut without = object;
        without["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(cut, without, "seed {seed}");
    }
}

#[test]
fn garbled_objects_never_panic_and_never_disagree_with_serde() {
    for seed in 0..6_000 {
        let mut random = Rng::with_seed(seed);
        let object = testing::object(&mut random);
        let mut json = testing::write(&mut random, &object, false);
        testing::garble(&mut random, &mut json);
        let ours = scan(&json);
        let _ = (scan_bookmark(&json), without_managed_fields(&json));
        if let Ok(oracle) = serde_json::from_slice::<Oracle>(&json) {
            match ours {
                Ok(ours) => assert_eq!(ours, like_go(oracle), "seed {seed}"),
                // serde reads an explicit null as none.
                Err(_) => {
                    assert!(!is_ok_by_serde(&oracle) || json.windows(4).any(|w| w == b"null"), "seed {seed}")
                }
            }
        }
        if serde_json::from_slice::<Value>(&json).is_ok() {
            let cut = without_managed_fields(&json);
            assert!(serde_json::from_slice::<Value>(&cut).is_ok(), "seed {seed}");
        }
    }
}

#[test]
fn never_reads_a_value_that_serde_refuses() {
    let tokens = [
        r#""Pod""#,
        r#""v1""#,
        r#""cärt""#,
        r#""shop""#,
        r#""u-1""#,
        r#""7""#,
        r#"{"a":"b","c\n":"\u00e9"}"#,
    ];
    let mut agreed = 0;
    for seed in 0..10_000 {
        let mut random = Rng::with_seed(seed);
        let mut tokens = tokens.map(|token| token.as_bytes().to_vec());
        let victim = random.usize(..tokens.len());
        testing::garble(&mut random, &mut tokens[victim]);
        let names = [
            r#"{"kind":"#,
            r#","apiVersion":"#,
            r#","metadata":{"name":"#,
            r#","namespace":"#,
            r#","uid":"#,
            r#","resourceVersion":"#,
            r#","labels":"#,
        ];
        let mut json: Vec<u8> =
            names.iter().zip(&tokens).flat_map(|(name, token)| [name.as_bytes(), token].concat()).collect();
        json.extend_from_slice(b"}}");
        let Ok(ours) = scan(&json) else { continue };
        match serde_json::from_slice::<Oracle>(&json) {
            Ok(oracle) => {
                assert_eq!(ours, like_go(oracle), "seed {seed}");
                agreed += 1;
            }
            Err(error) => {
                let stopped = scan_object(&json).unwrap().stopped_at.at();
                assert!(
                    offset(&error, &json) > stopped || error.to_string().starts_with("duplicate field"),
                    "seed {seed}: {error} in {:?}",
                    String::from_utf8_lossy(&json)
                );
            }
        }
    }
    assert!(agreed > 300, "{agreed}");
}

#[test]
fn reads_no_further_than_it_must() {
    let metadata =
        r#"{"name":"a","namespace":"b","uid":"c","resourceVersion":"7","labels":{},"annotations":"#;
    let known = format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{metadata}"#);
    let scanned = scan_object(known.as_bytes()).unwrap();
    assert_eq!(scanned.type_meta().unwrap().kind.as_deref(), Some("Pod"));
    assert_eq!(scanned.into_object(known.as_bytes()).unwrap().resource_version(), &"7".into());

    let unknown =
        format!(r#"{{"metadata":{metadata}{{}}}},"spec":[{{"kind":"x"}}],"apiVersion":"v1","kind":"Pod"}}"#);
    let types = scan_object(unknown.as_bytes()).unwrap().type_meta().unwrap();
    assert_eq!((types.kind.as_deref(), types.api_version.as_deref()), (Some("Pod"), Some("v1")));
}

#[test]
fn l13_a_listed_object_equals_a_watched_one() {
    let item = br#" {"metadata":{"name":"cart","namespace":"shop","resourceVersion":"7"},"spec":{}}"#;
    let event = br#" {"kind":"Pod","apiVersion":"v1","metadata":{"name":"cart","namespace":"shop","resourceVersion":"7"},"spec":{}}"#;
    let listed = scan_object(item).unwrap().into_object_of(item, "v1", "Pod").unwrap();
    let watched = scan_object(event).unwrap().into_object(event).unwrap();
    assert!(listed.same_content(&watched), "{:?}", String::from_utf8_lossy(&listed.json().unwrap()));

    // Items of custom resources have their own types, in any place. An item with one of the two gets only the other.
    for (item, expected) in [
        (
            r#"{"apiVersion":"x/v1","kind":"Y","metadata":{"name":"a"}}"#,
            r#"{"apiVersion":"x/v1","kind":"Y","metadata":{"name":"a"}}"#,
        ),
        (
            r#"{"metadata":{"name":"a"},"kind":"Y","apiVersion":"x/v1"}"#,
            r#"{"metadata":{"name":"a"},"kind":"Y","apiVersion":"x/v1"}"#,
        ),
        (
            r#"{"metadata":{"name":"a"},"kind":"Y"}"#,
            r#"{"apiVersion":"v1","metadata":{"name":"a"},"kind":"Y"}"#,
        ),
    ] {
        let object =
            scan_object(item.as_bytes()).unwrap().into_object_of(item.as_bytes(), "v1", "Pod").unwrap();
        assert_eq!(String::from_utf8_lossy(&object.json().unwrap()), expected);
    }
    // The result is JSON for any kind of the server.
    let object = scan_object(item).unwrap().into_object_of(item, "v1", "P\"o\n").unwrap();
    assert_eq!(object.decode::<Value>().unwrap()["kind"], "P\"o\n");
}

#[test]
fn l7_an_object_holds_its_own_bytes_alone() {
    let list = vec![br#"{"metadata":{"name":"cart"}}"#.to_vec(); 1_000].concat();
    let item = &list[..28];
    let object = scan_object(item).unwrap().into_object(item).unwrap();
    assert!(object.held_bytes() < 1_000);
    drop(list);
    assert_eq!(*object.json().unwrap(), *br#"{"metadata":{"name":"cart"}}"#);
}

#[test]
fn w8_an_error_names_the_object_where_it_can() {
    for (json, key) in [
        (r#"{"metadata":{"uid":5,"name":"cart","namespace":"shop"}}"#, Some("shop/cart")),
        (r#"{"metadata":{"name":"node-1","resourceVersion":[]}}"#, Some("node-1")),
        // The namespace may be missing because of the damage: a wrong key would be worse than none.
        (r#"{"metadata":{"uid":5,"name":"cart""#, None),
        (r#"{"metadata":{"name":"cart","namespace":7}}"#, None),
        (r#"{"metadata":{"name":""}}"#, None),
        (r#"{"metadata":{"name":null}}"#, None),
        (r#"{"metadata":null}"#, None),
        (r#"{"kind":"Pod"}"#, None),
        (r#"{"kind":null,"metadata":{"name":"cart"}}"#, None),
        ("[]", None),
        ("", None),
    ] {
        let error = scan_object(json.as_bytes()).unwrap_err();
        assert_eq!(error.key().map(ObjectKey::as_str), key, "{json}");
        assert!(!error.to_string().contains("cart"), "{json}: {error}");
    }
    for json in [
        r#"{"metadata":{"name":"cart","labels":{"a":1}}}"#,
        r#"{"metadata":{"name":"cart","labels":["secret"]}}"#,
        r#"{"metadata":{"name":"cart"},"kind":5}"#,
    ] {
        let error =
            scan_object(json.as_bytes()).unwrap().into_object_of(json.as_bytes(), "v1", "Pod").unwrap_err();
        assert_eq!(error.key().map(ObjectKey::as_str), Some("cart"), "{json}");
        assert!(!error.to_string().contains("secret"), "{json}: {error}");
    }
    assert!(scan_object(br#"{"metadata":{"name":"a/b"}}"#).unwrap().into_object(b"").is_err());
}

#[test]
fn the_first_of_two_members_counts() {
    let json = br#"{"metadata":{"name":"a","uid":"1","name":"b","uid":"2"},"metadata":{"name":"c"}}"#;
    let scanned = scan_object(json).unwrap();
    assert_eq!((scanned.name(), scanned.uid()), ("a", Uid::new("1")));
}

#[test]
fn s2_only_the_annotation_true_ends_the_initial_events() {
    for (value, ends) in
        [("\"true\"", true), ("\"false\"", false), ("\"TRUE\"", false), ("true", false), ("null", false)]
    {
        let json = format!(
            r#"{{"metadata":{{"annotations":{{"a":"b","k8s.io/initial-events-end":{value}}},"resourceVersion":"9"}}}}"#
        );
        let bookmark = scan_bookmark(json.as_bytes()).unwrap();
        assert_eq!(bookmark, Bookmark { resource_version: "9".into(), initial_events_end: ends }, "{value}");
    }
    let plain = scan_bookmark(br#"{"metadata":{"annotations":null,"resourceVersion":"9"}}"#).unwrap();
    assert!(!plain.initial_events_end);
    for json in [
        "{}",
        r#"{"metadata":{}}"#,
        r#"{"metadata":{"resourceVersion":""}}"#,
        r#"{"metadata":{"resourceVersion":"9""#,
    ] {
        assert!(scan_bookmark(json.as_bytes()).is_err(), "{json}");
    }
}

#[test]
fn managed_fields_take_one_comma_with_them() {
    for (json, without) in [
        (r#"{"metadata":{"managedFields":[]}}"#, r#"{"metadata":{}}"#),
        (r#"{"metadata":{"managedFields":[{"a":1}] , "name":"x"}}"#, r#"{"metadata":{ "name":"x"}}"#),
        (r#"{"metadata":{"name":"x" , "managedFields" : [] }}"#, r#"{"metadata":{"name":"x" }}"#),
        (
            r#"{"metadata":{"name":"x","managedFields":null,"uid":"y"}}"#,
            r#"{"metadata":{"name":"x","uid":"y"}}"#,
        ),
        (
            r#"{"metadata":{"name":"x"},"managedFields":[]}"#,
            r#"{"metadata":{"name":"x"},"managedFields":[]}"#,
        ),
        (r#"{"metadata":{"managedFields":["#, r#"{"metadata":{"managedFields":["#),
    ] {
        assert_eq!(String::from_utf8_lossy(&without_managed_fields(json.as_bytes())), without);
    }
    assert_eq!(managed_fields_span(json!({"metadata": {}}).to_string().as_bytes()), None);
}
