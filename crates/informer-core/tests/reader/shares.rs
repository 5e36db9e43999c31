//! A reader that keeps only a share of the objects.

use std::sync::Arc;

use informer_core::engine::TransformFn;
use informer_core::reflector::{ReflectorConfig, StreamingList};
use informer_core::share::{HashRange, Ranges, Share, ShareBy, hash};

use crate::rig::{Rig, pod};

/// The share with the hashes of these values only.
fn only(by: ShareBy, values: &[&str]) -> Share {
    let range = |value: &&str| HashRange::new(hash(value), u128::from(hash(value)) + 1).unwrap();
    Share::new(by, values.iter().map(range).collect::<Ranges>())
}

fn sharing(config: ReflectorConfig, share: Share) -> Rig {
    Rig::with_share(config, None, None, Some(share))
}

fn keys(rig: &Rig) -> Vec<String> {
    let mut keys: Vec<_> = rig.cache().snapshot().iter().map(|object| object.key().to_string()).collect();
    keys.sort();
    keys
}

/// A pod that this owner controls.
fn owned(name: &str, version: u64, owner: &str) -> String {
    let owners = format!(
        r#""ownerReferences":[{{"kind":"A","uid":"mine","name":"a"}},{{"kind":"B","uid":"{owner}","name":"b","controller":true}}]"#
    );
    pod(name, version).replace(r#""labels""#, &format!(r#"{owners},"labels""#))
}

#[test]
fn q9_objects_of_other_shares_are_never_stored() {
    let mut rig = sharing(ReflectorConfig::default(), only(ShareBy::Uid, &["a", "b", "c"]));
    rig.list(10, &[&pod("a", 5), &pod("x", 6)]);
    rig.accepted();
    rig.event("ADDED", &pod("y", 11));
    rig.event("ADDED", &pod("b", 12));
    rig.event("MODIFIED", &pod("x", 13));
    rig.event("DELETED", &pod("y", 14));
    rig.event("DELETED", &pod("a", 15));
    let changes = ["+ a@5", "+ b@12", "- a@15"];
    let record = rig.take_record();
    assert_eq!(record.iter().filter(|line| !line.contains("rv=")).collect::<Vec<_>>(), changes, "{record:?}");
    assert_eq!((keys(&rig), rig.outside()), (vec!["b".to_owned()], 4));
    // The versions of what is left out count, so that a watch does not resume before them.
    rig.event("MODIFIED", &pod("x", 16));
    assert_eq!(rig.claimed(), ["16", "16"]);
}

#[test]
fn q9_another_incarnation_may_be_in_another_share() {
    let mut rig = sharing(ReflectorConfig::default(), only(ShareBy::Uid, &["a"]));
    rig.list(10, &[&pod("a", 5)]);
    rig.accepted();
    rig.take_record();
    let other = pod("a", 11).replace(r#""uid":"a""#, r#""uid":"other""#);
    // The watch has lost the deletion.
    rig.event("ADDED", &other);
    assert_eq!((rig.take_record(), keys(&rig).len()), (vec!["- a@5".to_owned()], 0));
    let back = pod("a", 12);
    rig.event("ADDED", &back);
    rig.event("ERROR", r#"{"kind":"Status","status":"Failure","code":410,"reason":"Expired"}"#);
    rig.list(20, &[&other.replace(r#""11""#, r#""15""#)]);
    let record = rig.take_record();
    assert!(record.contains(&"- a@12".to_owned()), "{record:?}");
}

#[test]
fn q9_an_object_that_ceases_to_match_is_a_deletion_told_once() {
    for streaming_list in [StreamingList::Never, StreamingList::Preferred] {
        let config = ReflectorConfig { streaming_list, ..ReflectorConfig::default() };
        let mut rig = sharing(config, only(ShareBy::ControllerUid, &["mine"]));
        let initial = [owned("a", 5, "mine"), owned("b", 6, "theirs"), pod("c", 7)];
        if streaming_list == StreamingList::Never {
            rig.list(10, &initial.each_ref().map(String::as_str));
            rig.accepted();
        } else {
            rig.accepted();
            initial.iter().for_each(|object| rig.event("ADDED", object));
            // It ceases to match before the list is complete.
            rig.event("ADDED", &owned("d", 8, "mine"));
            rig.event("MODIFIED", &owned("d", 9, "theirs"));
            rig.event(
                "BOOKMARK",
                r#"{"kind":"Pod","metadata":{"resourceVersion":"10","annotations":{"k8s.io/initial-events-end":"true"}}}"#,
            );
        }
        let told = |rig: &mut Rig| {
            let lines = rig.take_record();
            lines.into_iter().filter(|line| !line.contains("rv=")).collect::<Vec<_>>()
        };
        assert_eq!(told(&mut rig), ["+ a@5"], "{streaming_list:?}");
        // Adopted, orphaned, deleted.
        rig.event("MODIFIED", &owned("b", 11, "mine"));
        rig.event("MODIFIED", &owned("a", 12, "theirs"));
        rig.event("MODIFIED", &owned("a", 13, "theirs"));
        rig.event("DELETED", &owned("a", 14, "theirs"));
        rig.event("MODIFIED", &pod("b", 15));
        rig.event("MODIFIED", &owned("b", 16, "mine"));
        rig.event("DELETED", &owned("b", 17, "mine"));
        assert_eq!(told(&mut rig), ["+ b@11", "- a@5", "- b@11", "+ b@16", "- b@17"], "{streaming_list:?}");
    }
}

#[test]
fn q9_an_object_without_its_hashed_value_is_quarantined() {
    let mut rig = sharing(ReflectorConfig::default(), only(ShareBy::Uid, &["a", "b"]));
    let without_uid = |name: &str, version| pod(name, version).replace(&format!(r#""uid":"{name}","#), "");
    rig.list(10, &[&pod("a", 5), &without_uid("b", 6)]);
    rig.accepted();
    assert_eq!((keys(&rig), rig.quarantined()), (vec!["a".to_owned()], vec!["b".to_owned()]));
    rig.event("MODIFIED", &pod("b", 11));
    assert_eq!(rig.quarantined(), [""; 0]);

    let mut rig = sharing(ReflectorConfig::default(), only(ShareBy::ControllerUid, &["mine"]));
    rig.list(10, &[&owned("a", 5, "mine")]);
    rig.accepted();
    rig.event("MODIFIED", &owned("a", 11, "mine").replace(r#""controller":true"#, r#""controller":"yes""#));
    // The last good version stays.
    assert_eq!((keys(&rig), rig.quarantined()), (vec!["a".to_owned()], vec!["a".to_owned()]));
    // An object that leaves the share leaves the quarantine.
    rig.event("MODIFIED", &owned("a", 12, "theirs"));
    assert_eq!((keys(&rig).len(), rig.quarantined()), (0, Vec::new()));
}

#[test]
fn q9_an_undecodable_object_of_another_share_is_nobodys_concern() {
    let mut rig = sharing(ReflectorConfig::default(), only(ShareBy::Uid, &["a"]));
    rig.list(10, &[&pod("b", 6).replace(r#""app":"b""#, r#""app":1"#)]);
    rig.accepted();
    rig.event("MODIFIED", &pod("b", 11).replace(r#""app":"b""#, r#""app":1"#));
    assert_eq!((rig.quarantined(), rig.outside()), (Vec::new(), 2));
}

#[test]
fn q9_a_transform_never_sees_objects_of_other_shares() {
    let transform: TransformFn = Arc::new(|object| {
        assert_ne!(object.key().as_str(), "x");
        Ok(Some(object.without_managed_fields().unwrap()))
    });
    let share = only(ShareBy::Uid, &["a"]);
    let mut rig = Rig::with_share(ReflectorConfig::default(), Some(transform), None, Some(share));
    rig.list(10, &[&pod("a", 5), &pod("x", 6)]);
    rig.accepted();
    rig.event("MODIFIED", &pod("x", 11));
    rig.event("MODIFIED", &pod("a", 12));
    assert_eq!((keys(&rig), rig.outside()), (vec!["a".to_owned()], 2));
}
