//! The hash of a share, and the requests for it.

use super::*;

fn object(metadata: &str) -> Object {
    Object::from_json(format!(r#"{{"kind":"Pod","metadata":{{"name":"a",{metadata}}}}}"#).as_bytes()).unwrap()
}

/// The share with this hash only.
fn only(by: ShareBy, hash: u64) -> Share {
    Share::new(by, HashRange::new(hash, u128::from(hash) + 1).unwrap())
}

const UID: &str = "5bce1f40-01fb-4e1c-9b62-0d7c1f6a8e11";

#[test]
fn an_object_is_in_the_share_that_has_its_hash() {
    let owners = format!(
        r#""ownerReferences":[{{"kind":"A","name":"x","uid":"other"}},
        {{"kind":"A","name":"y","uid":"{UID}","controller":true}}]"#
    );
    for (by, metadata, value) in [
        (ShareBy::Uid, format!(r#""uid":"{UID}""#), UID),
        (ShareBy::Uid, r#""uid":"no uuid""#.to_owned(), "no uuid"),
        (ShareBy::Namespace, r#""namespace":"shop""#.to_owned(), "shop"),
        (ShareBy::Namespace, r#""uid":"1""#.to_owned(), ""),
        (ShareBy::ControllerUid, owners, UID),
    ] {
        let object = object(&metadata);
        let mine = only(by, hash(value));
        assert_eq!(mine.hash_of(&object).unwrap(), Some(hash(value)), "{metadata}");
        assert!(mine.has(&object), "{metadata}");
        let others = Share::new(by, Ranges::all().minus(mine.ranges()));
        assert!(!others.has(&object), "{metadata}");
    }
}

#[test]
fn an_object_without_the_value_is_in_no_share() {
    let all = |by| Share::new(by, Ranges::all());
    for metadata in [
        r#""uid":"1""#,
        r#""ownerReferences":null"#,
        r#""ownerReferences":[{"kind":"A","name":"x","uid":"u"},{"kind":"A","name":"y","uid":"v","controller":false}]"#,
    ] {
        assert_eq!(all(ShareBy::ControllerUid).hash_of(&object(metadata)).unwrap(), None, "{metadata}");
    }
    let nameless = object(r#""namespace":"shop""#);
    assert!(
        matches!(all(ShareBy::Uid).hash_of(&nameless), Err(Unhashable::NoUid(key)) if key.as_str() == "shop/a")
    );
    let odd = object(r#""ownerReferences":7"#);
    assert!(matches!(all(ShareBy::ControllerUid).hash_of(&odd), Err(Unhashable::Undecodable(_))));
    assert!(!all(ShareBy::Uid).has(&nameless) && !all(ShareBy::ControllerUid).has(&odd));
}

#[test]
fn the_selector_is_what_a_server_takes() {
    let ranges: Ranges = [(0, 1 << 60), (1 << 63, 1 << 64)]
        .map(|(start, end)| HashRange::new(start, end).unwrap())
        .into_iter()
        .collect();
    let share = Share::new(ShareBy::Uid, ranges);
    assert_eq!(
        share.selector().unwrap(),
        "shardRange(object.metadata.uid, '0x0000000000000000', '0x1000000000000000') || \
         shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
    );
    assert_eq!(share.of(ShareBy::ControllerUid).selector(), None);
    assert_eq!(Share::new(ShareBy::Uid, Ranges::none()).selector(), None);
}

#[test]
fn what_is_hashed_has_a_name() {
    for by in [ShareBy::Uid, ShareBy::Namespace, ShareBy::ControllerUid] {
        assert_eq!(by.to_string().parse(), Ok(by));
    }
    assert!("name".parse::<ShareBy>().is_err());
}
