//! Events of a watch, whole and garbled.

use std::sync::Arc;
use std::time::Duration;

use informer_core::engine::TransformFn;
use informer_core::reflector::{ReflectorConfig, StreamingList};
use informer_core::{Object, Uid};

use crate::rig::{Rig, pod};

fn watching() -> Rig {
    Rig::watching(&[&pod("a", 5), &pod("b", 6)], None)
}

#[test]
fn w8_a_new_state_that_cannot_be_read_is_skipped_where_its_key_can() {
    let mut rig = watching();
    // The labels are no texts; the object breaks off behind its metadata; it is longer than allowed.
    rig.event("MODIFIED", r#"{"metadata":{"name":"a","uid":"a","resourceVersion":"11","labels":{"x":1}}}"#);
    rig.line(r#"{"type":"ADDED","object":{"metadata":{"name":"c","uid":"c","resourceVersion":"12","labels":{}},"sp"#);
    rig.event("ADDED", &pod("d", 13).replace("{}", &format!(r#"{{"x":"{}"}}"#, "y".repeat(3_000))));
    rig.event("MODIFIED", &pod("b", 14));
    assert_eq!(rig.take_record(), ["quarantined a", "quarantined c", "quarantined d", "~ b@6 -> b@14"]);
}

#[test]
fn w8_an_event_of_the_past_does_not_end_the_quarantine() {
    let mut rig = watching();
    rig.event("MODIFIED", &pod("a", 11).replace("\"11\"", "11"));
    assert_eq!(rig.quarantined(), ["a"]);
    // A repeated event is no newer than the cache's state, and the version 11 is still not in the cache.
    rig.event("MODIFIED", &pod("a", 4));
    rig.event("DELETED", &pod("a", 3));
    assert_eq!(rig.quarantined(), ["a"]);
    rig.event("MODIFIED", &pod("a", 12));
    assert_eq!(rig.quarantined(), [""; 0]);
}

#[test]
fn d6_a_transform_that_fails_for_an_event_of_the_past_says_nothing_of_the_present() {
    let transform: TransformFn = Arc::new(|object| match object.resource_version().to_string().as_str() {
        "4" => Err("no".to_owned()),
        _ => Ok(Some(object.without_managed_fields().unwrap())),
    });
    let mut rig = Rig::watching(&[&pod("a", 5)], Some(transform));
    rig.event("MODIFIED", &pod("a", 4));
    assert_eq!((rig.take_record(), rig.quarantined()), (Vec::new(), Vec::new()));
}

#[test]
fn w17_an_event_whose_change_is_lost_leads_to_a_list() {
    let nameless = r#"{"metadata":{"uid":"a","resourceVersion":"11"}}"#;
    let cut = pod("a", 11).replace("\"spec\":{}}", "\"sp");
    let without_version = pod("a", 11).replace("\"11\"", "11");
    for (line, lost) in [
        (format!(r#"{{"type":"MODIFIED","object":{nameless}}}"#), "the MODIFIED event is lost"),
        (format!(r#"{{"type":"DELETED","object":{nameless}}}"#), "the DELETED event is lost"),
        (format!(r#"{{"type":"DELETED","object":{cut}"#), "the DELETED event of a is lost"),
        (format!(r#"{{"type":"DELETED","object":{without_version}}}"#), "the DELETED event of a is lost"),
        (format!(r#"{{"type":"VANISHED","object":{}}}"#, pod("a", 11)), "an event of a is lost"),
        (format!(r#"{{"object":{}}}"#, pod("a", 11)), "an event of a is lost"),
        (format!(r#"{{"object":{cut}"#), "an event of a is lost"),
        (r#"{"type":"ERROR","object":"#.to_owned(), "the ERROR event is lost"),
        ("{}".to_owned(), "an event is lost"),
        ("\u{1}#\u{2}#".to_owned(), "an event is lost"),
    ] {
        let mut rig = watching();
        rig.line(&line);
        // Later events on the same connection do not make up for it.
        rig.event("ADDED", &pod("later", 20));
        let record = rig.take_record();
        assert!(record[0].starts_with(lost), "{line}: {record:?}");
        assert_eq!(record[1..], ["retrying"], "{line}");
        assert_eq!(rig.claimed(), ["10", "10"], "{line}");
        rig.deadline();
        assert_eq!(rig.take_record(), [r#"LIST rv="10""#], "{line}");
        rig.list(21, &[&pod("b", 6), &pod("later", 20)]);
        assert_eq!(rig.take_record(), ["- a@5", "+ later@20", r#"WATCH rv="21""#], "{line}");
    }
}

#[test]
fn w17_a_server_that_garbles_each_event_is_listed_at_a_slow_pace() {
    let mut rig = watching();
    let begun = rig.now();
    for version in 11..31 {
        rig.line("garbled");
        rig.deadline();
        rig.list(version, &[&pod("a", 5), &pod("b", 6)]);
        rig.accepted();
    }
    assert!(rig.now().since(begun) > Duration::from_secs(300), "{:?}", rig.now().since(begun));
}

#[test]
fn w17_a_deletion_counts_where_its_key_and_version_can_be_read() {
    let mut rig = watching();
    rig.event("DELETED", r#"{"metadata":{"name":"a","uid":"a","resourceVersion":"11","labels":{"x":1}}}"#);
    assert_eq!(rig.take_record(), ["quarantined a", "- a@5"]);
    assert_eq!(rig.claimed(), ["11", "11"]);
    // One of which the cache never had a version.
    rig.event("DELETED", r#"{"metadata":{"name":"c","uid":"c","resourceVersion":"12","labels":{"x":1}}}"#);
    assert_eq!(rig.take_record(), ["quarantined c"]);
    assert_eq!(rig.claimed(), ["12", "12"]);
    // One of a former incarnation.
    rig.event("DELETED", r#"{"metadata":{"name":"b","uid":"b","resourceVersion":"4","labels":{"x":1}}}"#);
    assert_eq!(rig.take_record(), ["quarantined b"]);
    assert!(rig.cache().get_str("b").is_some());
}

#[test]
fn w17_a_bookmark_that_cannot_be_read_costs_no_list() {
    let mut rig = watching();
    rig.event("BOOKMARK", r#"{"kind":"Pod"}"#);
    rig.line(r#"{"type":"BOOKMARK","object":{"#);
    assert_eq!(rig.take_record(), ["quarantined ", "quarantined "]);
    assert_eq!(rig.claimed(), ["10", "10"]);
}

#[test]
fn w17_a_streaming_list_with_a_lost_event_begins_again() {
    let config = ReflectorConfig { streaming_list: StreamingList::Preferred, ..ReflectorConfig::default() };
    let mut rig = Rig::new(config, None);
    rig.accepted();
    rig.event("ADDED", &pod("a", 5));
    rig.take_record();
    rig.event("DELETED", "{}");
    let record = rig.take_record();
    assert!(record[0].starts_with("the DELETED event is lost"), "{record:?}");
    rig.deadline();
    rig.accepted();
    let end = r#"{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
    rig.event("BOOKMARK", end);
    assert!(rig.cache().is_synced() && rig.cache().is_empty());
}

/// Leaves out objects whose label says so.
fn picky() -> Option<TransformFn> {
    Some(Arc::new(|object| {
        let is_left_out = object.labels().iter().any(|(_, app)| app.starts_with("out"));
        let same = informer_core::Object::from_json(&object.json().unwrap()).unwrap();
        Ok((!is_left_out).then_some(same))
    }))
}

#[test]
fn w1_an_event_whose_object_a_transform_leaves_out_moves_the_version() {
    let mut rig = Rig::watching(&[&pod("a", 5), &pod("b", 6)], picky());
    rig.event("MODIFIED", &pod("a", 11).replace(r#""app":"a""#, r#""app":"out""#));
    assert_eq!(rig.take_record(), ["- a@5"]);
    assert_eq!(rig.claimed(), ["11", "11"]);
    rig.event("ADDED", &pod("out-c", 12));
    assert_eq!(rig.claimed(), ["12", "12"]);
    rig.event("DELETED", &pod("b", 13).replace(r#""app":"b""#, r#""app":"out""#));
    assert_eq!(rig.take_record(), ["- b@6"]);
    assert_eq!(rig.claimed(), ["13", "13"]);
    // An older version, as a former server of the cluster may tell once more, deletes nothing.
    rig.event("ADDED", &pod("a", 14));
    rig.take_record();
    rig.event("MODIFIED", &pod("a", 11).replace(r#""app":"a""#, r#""app":"out""#));
    assert_eq!(rig.take_record(), [""; 0]);
    assert_eq!(rig.claimed(), ["14", "14"]);
}

#[test]
fn w1_s3_a_streaming_list_forgets_what_a_transform_leaves_out_later() {
    let config = ReflectorConfig { streaming_list: StreamingList::Preferred, ..ReflectorConfig::default() };
    let mut rig = Rig::new(config, picky());
    rig.accepted();
    rig.event("ADDED", &pod("a", 5));
    rig.event("ADDED", &pod("b", 6));
    rig.event("MODIFIED", &pod("a", 7).replace(r#""app":"a""#, r#""app":"out""#));
    let end = r#"{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
    rig.event("BOOKMARK", end);
    assert_eq!(rig.take_record().last().unwrap(), "+ b@6");
    assert_eq!(rig.cache().len(), 1);
}

#[test]
fn f9_an_index_by_controller_runs_no_code_that_could_block() {
    let owned = |version: u64, owner: &str| {
        let owners = format!(
            r#"[{{"uid":"no","kind":"A","name":"a"}},{{"uid":"{owner}","kind":"B","name":"b","controller":true}}]"#
        );
        pod("x", version).replace(r#""labels""#, &format!(r#""ownerReferences":{owners},"labels""#))
    };
    let mut rig = Rig::watching(&[], None);
    let by_controller = rig.cache().add_controller_index();
    rig.hold_computes();
    rig.event("ADDED", &owned(11, "1"));
    assert_eq!(rig.take_record(), ["+ x@11"]);
    assert_eq!(by_controller.get(&Uid::new("1")).len(), 1);
    assert_eq!(by_controller.get(&Uid::new("no")).len(), 0);
    rig.event("MODIFIED", &owned(12, "2"));
    assert_eq!(by_controller.get(&Uid::new("1")).len(), 0);
    let found = by_controller.get(&Uid::new("2"));
    let [found] = &found[..] else { panic!("{found:?}") };
    let controller = found.controller().unwrap().unwrap();
    assert_eq!((controller.kind.as_str(), controller.name.as_str()), ("B", "b"));
    rig.take_record();

    // A function of the user's waits for a thread.
    let _by_name = rig.cache().add_index(|object: &Arc<Object>| Ok(vec![object.key().name().to_owned()]));
    rig.event("MODIFIED", &owned(13, "1"));
    assert!(rig.take_record().is_empty());
    rig.compute();
    assert_eq!(rig.take_record(), ["~ x@12 -> x@13"]);
    assert_eq!(by_controller.get(&Uid::new("1")).len(), 1);
}

#[test]
fn f9_a_list_whose_objects_an_index_reads_waits_for_a_thread_if_it_is_long() {
    let pods: Vec<_> = (0..300).map(|number| pod(&format!("x{number:03}"), 7)).collect();
    let items: Vec<_> = pods.iter().map(String::as_str).collect();
    for is_indexed in [false, true] {
        let mut rig = Rig::new(ReflectorConfig::default(), None);
        let _index = is_indexed.then(|| rig.cache().add_controller_index());
        rig.hold_computes();
        rig.list(9, &items);
        assert_eq!(rig.take_record().iter().any(|line| line.starts_with('+')), !is_indexed);
        rig.compute();
        assert_eq!(rig.cache().len(), 300);
    }
}
