//! Lists of what the cache has in the same version.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use informer_core::engine::TransformFn;
use informer_core::reflector::{ReflectorConfig, StreamingList};
use informer_core::{Object, PlainStorage, saved};

use crate::rig::{Rig, pod};

/// An item of a list, which lacks its kind, with this spec.
fn item(name: &str, version: u64, spec: &str) -> String {
    let type_meta = r#""kind":"Pod","apiVersion":"v1","#;
    pod(name, version).replace(type_meta, "").replace(r#""spec":{}"#, &format!(r#""spec":{{{spec}}}"#))
}

/// Lists these items once more, as an expired watch makes it.
fn relist(rig: &mut Rig, version: u64, items: &[&str]) -> Vec<String> {
    rig.event("ERROR", r#"{"kind":"Status","apiVersion":"v1","reason":"Expired","code":410}"#);
    lists(rig, version, items)
}

/// The changes of a list that is due.
fn lists(rig: &mut Rig, version: u64, items: &[&str]) -> Vec<String> {
    if !rig.take_record().iter().any(|line| line.starts_with("LIST")) {
        rig.deadline();
        assert!(rig.take_record().last().unwrap().starts_with("LIST"));
    }
    rig.list(version, items);
    rig.accepted();
    rig.take_record().into_iter().filter(|line| !line.starts_with("WATCH")).collect()
}

fn spec_of(rig: &Rig, key: &str) -> String {
    let object = rig.cache().get_str(key).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&object.json().unwrap()).unwrap();
    value["spec"].to_string()
}

#[test]
fn l10_h9_an_item_of_the_same_version_and_bytes_is_neither_decoded_nor_staged() {
    let read = Arc::new(AtomicUsize::new(0));
    let counts = read.clone();
    let transform = Arc::new(move |object: &Object| {
        counts.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Object::from_json(&object.json().unwrap()).unwrap()))
    });
    let (a, b) = (item("a", 5, ""), item("b", 6, ""));
    let mut rig = Rig::watching(&[&a, &b], Some(transform));
    // An event says first what its object is; the list that follows does not.
    rig.event("MODIFIED", &pod("b", 11));
    rig.take_record();
    let before = rig.cache().get_str("a").unwrap();
    assert_eq!(read.swap(0, Ordering::Relaxed), 3);
    assert_eq!(relist(&mut rig, 12, &[&a, &item("b", 11, "")]), [""; 0]);
    assert_eq!(read.load(Ordering::Relaxed), 0);
    assert!(Arc::ptr_eq(&before, &rig.cache().get_str("a").unwrap()));
}

#[test]
fn l14_content_that_changed_at_the_same_version_is_an_update_once() {
    let mut rig = Rig::watching(&[&item("a", 5, ""), &item("b", 6, "")], None);
    let defaulted = item("a", 5, r#""replicas":1"#);
    assert_eq!(relist(&mut rig, 11, &[&defaulted, &item("b", 6, "")]), ["~ a@5 -> a@5"]);
    assert_eq!(spec_of(&rig, "a"), r#"{"replicas":1}"#);
    for version in 12..15 {
        assert_eq!(relist(&mut rig, version, &[&defaulted, &item("b", 6, "")]), [""; 0]);
    }
    // And once more with the next definition.
    let again = item("a", 5, r#""replicas":2"#);
    assert_eq!(relist(&mut rig, 15, &[&again, &item("b", 6, "")]), ["~ a@5 -> a@5"]);
    // Events repeat no content (W11).
    rig.event("MODIFIED", &pod("a", 5));
    assert_eq!(rig.take_record(), [""; 0]);
}

#[test]
fn l14_each_list_after_a_changed_schema_brings_its_content() {
    let at = |replicas: u64| item("a", 5, &format!(r#""replicas":{replicas}"#));
    let mut rig = Rig::watching(&[&at(0)], None);
    for replicas in 1..4 {
        rig.schema_changed();
        assert_eq!(lists(&mut rig, 10 + replicas, &[&at(replicas)]), ["~ a@5 -> a@5"]);
    }
}

#[test]
fn l14_content_that_differs_twice_in_a_row_is_listed_once_more() {
    let at = |replicas: u64| item("a", 5, &format!(r#""replicas":{replicas}"#));
    let mut rig = Rig::watching(&[&at(0)], None);
    assert_eq!(relist(&mut rig, 11, &[&at(1)]), ["~ a@5 -> a@5"]);
    assert_eq!(relist(&mut rig, 12, &[&at(2)]), ["unsteady a"]);
    rig.deadline();
    assert_eq!(rig.take_record(), [r#"LIST rv="12""#]);
    rig.list(12, &[&at(2)]);
    rig.accepted();
    assert_eq!(rig.take_record(), ["~ a@5 -> a@5", r#"WATCH rv="12""#]);
    // An object that differs at each list does not lead to a list after each list.
    assert_eq!(relist(&mut rig, 13, &[&at(3)]), ["unsteady a"]);
    rig.deadline();
    assert!(rig.take_record().iter().all(|line| !line.starts_with("LIST rv=\"13\"")));
}

#[test]
fn l14_a_difference_of_encoding_alone_is_none() {
    let mut rig = Rig::watching(&[&item("a", 5, r#""x":"1","y":[]"#)], None);
    let before = rig.cache().get_str("a").unwrap();
    for spec in [r#""y":[],"x":"1""#, r#" "x" : "1", "z": null"#, r#""x":"1","deep":{"er":{}}"#] {
        assert_eq!(relist(&mut rig, 11, &[&item("a", 5, spec)]), [""; 0], "{spec}");
    }
    assert!(Arc::ptr_eq(&before, &rig.cache().get_str("a").unwrap()));
}

#[test]
fn l14_what_differs_at_every_list_is_an_update_once_and_reported_once() {
    let at = |time: u64| item("a", 5, &format!(r#""time":{time}"#));
    let mut rig = Rig::watching(&[&at(0)], None);
    assert_eq!(relist(&mut rig, 11, &[&at(1)]), ["~ a@5 -> a@5"]);
    assert_eq!(relist(&mut rig, 12, &[&at(2)]), ["unsteady a"]);
    for time in 3..10 {
        assert_eq!(relist(&mut rig, 10 + time, &[&at(time)]), [""; 0]);
    }
    assert_eq!(spec_of(&rig, "a"), r#"{"time":1}"#);
    // Two lists that agree, as after two definitions in a row.
    assert_eq!(relist(&mut rig, 21, &[&at(9)]), ["~ a@5 -> a@5"]);
    assert_eq!(spec_of(&rig, "a"), r#"{"time":9}"#);
    assert_eq!(relist(&mut rig, 22, &[&at(9)]), [""; 0]);
    // Another version is another object.
    rig.event("MODIFIED", &pod("a", 30));
    assert_eq!(rig.take_record(), ["~ a@5 -> a@30"]);
}

/// The changes of a second streaming list of these events, after a first one that had an object `a` at this version.
fn streamed_again(version: &str, events: &[(&str, &str)]) -> Vec<String> {
    let end = |version: &str| {
        format!(
            r#"{{"metadata":{{"resourceVersion":"{version}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}"#
        )
    };
    let config = ReflectorConfig { streaming_list: StreamingList::Preferred, ..ReflectorConfig::default() };
    let mut rig = Rig::new(config, None);
    rig.accepted();
    rig.event("ADDED", &at("a", version));
    rig.event("BOOKMARK", &end(version));
    rig.event("ERROR", r#"{"kind":"Status","status":"Failure","code":410,"reason":"Expired"}"#);
    rig.take_record();
    rig.accepted();
    for (event, object) in events {
        rig.event(event, object);
    }
    rig.event("BOOKMARK", &end(version));
    rig.take_record()
}

fn at(name: &str, version: &str) -> String {
    pod(name, 5).replace(r#""resourceVersion":"5""#, &format!(r#""resourceVersion":"{version}""#))
}

fn revised(name: &str, version: &str) -> String {
    at(name, version).replace("{}", r#"{"replicas":1}"#)
}

#[test]
fn l14_s1_a_streaming_list_compares_too() {
    assert_eq!(streamed_again("5", &[("ADDED", &revised("a", "5"))]), ["~ a@5 -> a@5"]);
}

#[test]
fn l14_s3_a_second_event_of_a_key_does_not_hide_that_its_content_changed() {
    let (former, now) = (at("a", "x2"), revised("a", "x4"));
    assert_eq!(streamed_again("x4", &[("ADDED", &now), ("ADDED", &now)]), ["~ a@x4 -> a@x4"]);
    // Where a restored backup goes unnoticed, a version is used again.
    assert_eq!(streamed_again("x4", &[("ADDED", &former), ("MODIFIED", &now)]), ["~ a@x4 -> a@x4"]);
}

#[test]
fn l14_p2_content_that_changed_while_no_process_ran_is_an_update() {
    let a = item("a", 5, "");
    let file = Rig::watching(&[&a, &item("b", 6, "")], None).saved();
    let read = Arc::new(AtomicUsize::new(0));
    let counts = read.clone();
    let transform: TransformFn = Arc::new(move |object: &Object| {
        counts.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Object::from_json(&object.json().unwrap()).unwrap()))
    });
    let saved = saved::load(&file[..], &[], 1 << 20, &PlainStorage).unwrap();
    let mut rig = Rig::with_saved(ReflectorConfig::default(), Some(transform), Some(saved));
    // It asks how new the server is before it goes on, and the schema has changed since.
    rig.list(11, &[]);
    rig.accepted();
    rig.event("BOOKMARK", r#"{"metadata":{"resourceVersion":"11"}}"#);
    rig.take_record();
    assert_eq!(relist(&mut rig, 11, &[&a, &item("b", 6, r#""replicas":1"#)]), ["~ b@6 -> b@6"]);
    // The other one was not even looked at: the hashes that were saved have their key.
    assert_eq!(read.load(Ordering::Relaxed), 1);
}

#[test]
fn w8_l12_what_cannot_be_read_of_a_restored_server_is_held_wherever_the_version_stands() {
    let mut rig = Rig::watching(&[&item("a", 5, "")], None);
    rig.expired();
    rig.expired();
    assert_eq!(rig.take_record(), [r#"LIST rv="10""#, r#"LIST rv="""#]);
    // It shows itself to be of an older server behind its only item, so that the list has to come once more.
    let garbled = item("a", 3, "").replace("\"3\"", "3");
    rig.custom_list(4, &[&garbled]);
    assert_eq!(rig.take_record(), ["quarantined a", r#"LIST rv="""#]);
    rig.custom_list(4, &[&garbled]);
    assert_eq!(rig.take_record(), ["quarantined a", "- a@5", r#"WATCH rv="4""#]);
    assert_eq!(rig.quarantined(), ["a"]);
}

#[test]
fn l12_d6_what_was_kept_from_before_an_unnoticed_restore_gives_way_to_the_next_event() {
    let transform: TransformFn = Arc::new(|object| match object.resource_version().to_string().as_str() {
        "x3" => Err("no".to_owned()),
        _ => Ok(Some(object.without_managed_fields().unwrap())),
    });
    for (kind, event, told) in
        [("MODIFIED", revised("a", "x9"), "~ a@x9 -> a@x9"), ("DELETED", at("a", "x9"), "- a@x9")]
    {
        let mut rig = Rig::new(ReflectorConfig::default(), Some(transform.clone()));
        rig.list("x10", &[&at("a", "x9")]);
        rig.accepted();
        rig.expired();
        rig.expired();
        // The transform fails for the object of the restored server, so that the former one stays.
        rig.list("x4", &[&at("a", "x3")]);
        rig.accepted();
        rig.take_record();
        assert_eq!(rig.quarantined(), ["a"]);
        // The restored server comes to the version that it had before.
        rig.event(kind, &event);
        assert_eq!(rig.take_record(), [told]);
        assert_eq!((rig.quarantined(), rig.claimed()), (Vec::new(), ["x9", "x9"].map(str::to_owned)));
    }
}

#[test]
fn l12_f9_a_listed_object_stays_only_if_the_cache_is_to_have_it_when_the_list_is_applied() {
    let transform: TransformFn = Arc::new(|object| Ok(Some(object.without_managed_fields().unwrap())));
    let (a, b) = (item("a", 5, ""), item("b", 6, ""));
    let mut rig = Rig::watching(&[&a, &b], Some(transform));
    rig.hold_computes();
    // While the user's code runs, the server is restored from a backup. By the time that it lists it has come further than
    // before, and it still has the object.
    rig.event("DELETED", &pod("b", 11));
    rig.event("ERROR", r#"{"kind":"Status","apiVersion":"v1","reason":"Expired","code":410}"#);
    rig.list(12, &[&a, &b]);
    rig.compute();
    assert!(rig.cache().get_str("b").is_some(), "{:?}", rig.take_record());
}
