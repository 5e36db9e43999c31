//! Issue 21: Events are kept, and are no changes.

use std::time::Duration;

use kubediff_history::*;
use serde_json::{Value, json};

use crate::world::{Replaced, at, change, changed, known, noise, object, observation, open, retain};

/// A history with a deployment, its replica set and that one's pod, a node, and Events about each.
fn filled(path: &std::path::Path) -> History {
    let mut history = open(path);
    let mut batch = Batch::default();
    let owned =
        |by: &str| json!({"metadata": {"ownerReferences": [{"uid": "x"}, {"uid": by, "controller": true}]}});
    let objects = [
        (object("deployments", Some("shop"), "cart", "d"), json!({})),
        (object("replicasets", Some("shop"), "cart-1", "r"), owned("d")),
        (object("pods", Some("shop"), "cart-1-a", "p"), owned("r")),
        (object("pods", Some("shop"), "other", "o"), json!({})),
        (object("nodes", None, "n1", "n"), json!({})),
    ];
    for (id, body) in objects {
        batch.observe(observation(&id, 1, at(0), &body, known()));
    }
    let about = [
        ("a", "shop", "p"),
        ("b", "shop", "d"),
        ("c", "shop", "o"),
        ("d", "default", "n1"),
        ("e", "shop", "gone"),
    ];
    for (number, (name, namespace, uid)) in (1..).zip(about) {
        let id = object("events", Some(namespace), name, &format!("e-{name}"));
        let body = json!({"involvedObject": {"uid": uid}, "message": format!("about {uid}"), "count": 1});
        let added = ChangeRecord { verb: Verb::Added, ..ChangeRecord::default() };
        batch.observe(observation(&id, 10, at(number * 100), &body, (What::Event, added)));
    }
    history.commit(&batch).unwrap();
    history
}

fn messages(reader: &mut Reader, filter: &Filter) -> Vec<String> {
    let found = reader.records(filter, &Page::oldest(100)).unwrap().records;
    found
        .iter()
        .map(|record| match record {
            Record::Event(event) => event.object["message"].as_str().unwrap().to_owned(),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn of(kind: &str, name: Option<&str>) -> Filter {
    let kinds = vec![KindName { group: None, resource: kind.to_owned() }];
    Filter {
        scope: Scope { kinds, name: name.map(str::to_owned), ..Scope::default() },
        events: true,
        ..Filter::default()
    }
}

#[test]
fn events_are_found_by_their_object_and_its_controllers() {
    let folder = tempfile::tempdir().unwrap();
    let history = filled(&folder.path().join("history.db"));
    let reader = &mut history.reader().unwrap();
    let mut of = |kind: &str, name: Option<&str>| messages(reader, &of(kind, name));
    assert_eq!(of("pods", Some("cart-1-a")), ["about p"]);
    assert_eq!(of("deployments", Some("cart")), ["about p", "about d"]);
    // Events of a node are in another namespace, and have its name in place of its uid.
    assert_eq!(of("nodes", Some("n1")), ["about n1"]);
    assert_eq!(of("nodes", None), ["about n1"]);
    assert_eq!(of("pods", None), ["about p", "about o"]);
    assert_eq!(of("events", None), ["about p", "about d", "about o", "about n1", "about gone"]);
    assert_eq!(of("events", Some("c")), ["about o"]);
    let all = Filter { events: true, ..Filter::default() };
    assert_eq!(messages(reader, &all).len(), 5);
    let shop = Scope { namespaces: vec!["shop".to_owned()], ..Scope::default() };
    let since = Filter { scope: shop, from: Some(at(250)), ..all.clone() };
    assert_eq!(messages(reader, &since), ["about o", "about gone"]);
    // Events have no paths, managers and verbs; and without being asked for, they are in no answer.
    for filter in [
        Filter { verbs: vec![Verb::Added], ..all.clone() },
        Filter { manager: Some("helm".to_owned()), ..all },
        Filter::default(),
    ] {
        assert_eq!(messages(reader, &filter), [""; 0]);
    }
    let size = reader.size().unwrap();
    assert_eq!((size.changes, size.events), (0, 5));
    assert_eq!(reader.count_after(Number(0)).unwrap(), 0);
    assert_eq!(reader.check().unwrap().problems, [""; 0]);
}

#[test]
fn an_event_has_its_latest_count_and_is_gone_when_it_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = filled(&folder.path().join("history.db"));
    let id = object("events", Some("shop"), "a", "e-a");
    let mut batch = Batch::default();
    let again = json!({"involvedObject": {"uid": "p"}, "message": "about p", "count": 12});
    batch.observe(observation(&id, 11, at(600), &again, noise()));
    history.commit(&batch).unwrap();
    let mut reader = history.reader().unwrap();
    let counts = |reader: &mut Reader| -> Vec<Value> {
        let found = reader.records(&of("pods", Some("cart-1-a")), &Page::newest(10)).unwrap().records;
        found
            .iter()
            .map(|record| serde_json::to_value(record).unwrap()["event"]["object"]["count"].clone())
            .collect()
    };
    assert_eq!(counts(&mut reader), [12]);

    let mut batch = Batch::default();
    let deleted = ChangeRecord { verb: Verb::Deleted, ..ChangeRecord::default() };
    batch.observe(observation(&id, 12, at(700), &again, (What::Event, deleted)));
    history.commit(&batch).unwrap();
    // That it went is no record. As an object it was there until then.
    assert_eq!(counts(&mut reader), [1]);
    let there = |reader: &mut Reader, second| {
        let scope = Scope { uid: Some("e-a".to_owned()), ..Scope::default() };
        reader.present(&scope, Some(at(second))).unwrap().len()
    };
    assert_eq!((there(&mut reader, 650), there(&mut reader, 700)), (1, 0));
}

#[test]
fn events_have_an_age_and_a_share_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = filled(&folder.path().join("history.db"));
    let mut batch = Batch::default();
    let cart = object("deployments", Some("shop"), "cart", "d");
    batch.observe(observation(
        &cart,
        2,
        at(1_000),
        &json!({"a": 1}),
        changed(change(Verb::Updated, &["helm"], &["a"])),
    ));
    history.commit(&batch).unwrap();
    let mut reader = history.reader().unwrap();
    assert_eq!(reader.events_since().unwrap(), None);
    let kept = Retention { event_age: Some(Duration::from_secs(750)), ..Retention::default() };
    assert_eq!(retain(&mut history, &kept, at(2_000)).versions, 2);
    assert_eq!(messages(&mut reader, &of("events", None)), ["about o", "about n1", "about gone"]);
    assert_eq!(reader.events_since().unwrap(), Some(at(300)));
    // The objects of these Events stay, and so do changes.
    assert_eq!(reader.size().unwrap().changes, 1);
    assert_eq!(reader.complete_since().unwrap(), Some(at(0)));

    let kept = Retention { event_bytes: Some(600), ..Retention::default() };
    retain(&mut history, &kept, at(2_000));
    assert_eq!(messages(&mut reader, &of("events", None)), ["about gone"]);
    let kept = Retention { event_bytes: Some(0), ..Retention::default() };
    retain(&mut history, &kept, at(2_000));
    assert_eq!(reader.size().unwrap().events, 0);
    assert_eq!(reader.check().unwrap().problems, [""; 0]);
}

#[test]
fn a_scrub_masks_events_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = filled(&folder.path().join("history.db"));
    let mut scrub = history.scrub_of_all();
    while history.scrub(&mut scrub, &Replaced("about p")).unwrap() {}
    let said = messages(&mut history.reader().unwrap(), &of("pods", Some("cart-1-a")));
    assert!(said.len() == 1 && !said[0].contains("about p"), "{said:?}");
}

/// A user with rights in one namespace can write any uid there.
#[test]
fn an_event_or_an_owner_of_another_namespace_names_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = filled(&folder.path().join("history.db"));
    let mut batch = Batch::default();
    let forged = json!({"metadata": {"ownerReferences": [{"uid": "d", "controller": true}]}});
    let pod = object("pods", Some("evil"), "forged", "f");
    batch.observe(observation(&pod, 20, at(2_000), &forged, known()));
    for (name, uid) in [("x", "p"), ("y", "f")] {
        let id = object("events", Some("evil"), name, &format!("e-{name}"));
        let body = json!({"involvedObject": {"uid": uid}, "message": "forged"});
        let added = ChangeRecord { verb: Verb::Added, ..ChangeRecord::default() };
        batch.observe(observation(&id, 21, at(2_000), &body, (What::Event, added)));
    }
    history.commit(&batch).unwrap();
    let reader = &mut history.reader().unwrap();
    let mut of = |kind: &str, name: Option<&str>| messages(reader, &of(kind, name));
    assert_eq!(of("pods", Some("cart-1-a")), ["about p"]);
    assert_eq!(of("deployments", Some("cart")), ["about p", "about d"]);
    assert_eq!(of("deployments", None), ["about p", "about d"]);
    assert_eq!(of("pods", Some("forged")), ["forged"]);
}

/// As of other records: a clock that was days ahead must not take all.
#[test]
fn k1_a_run_removes_no_more_than_a_days_events() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    let mut batch = Batch::default();
    for hour in (0..100).step_by(10) {
        let id = object("events", Some("shop"), &format!("e{hour}"), &format!("e-{hour}"));
        let body = json!({"involvedObject": {"uid": "p"}, "message": format!("{hour}")});
        let added = ChangeRecord { verb: Verb::Added, ..ChangeRecord::default() };
        batch.observe(observation(&id, 1, at(hour * 3_600), &body, (What::Event, added)));
    }
    history.commit(&batch).unwrap();
    let kept = Retention { event_age: Some(Duration::from_secs(3_600)), ..Retention::default() };
    let mut left = Vec::new();
    for _ in 0..5 {
        retain(&mut history, &kept, at(1_000_000));
        left.push(history.reader().unwrap().size().unwrap().events);
    }
    assert_eq!(left, [7, 4, 1, 1, 1]);
    let bytes = Retention { event_bytes: Some(0), ..Retention::default() };
    retain(&mut history, &bytes, at(1_000_000));
    assert_eq!(history.reader().unwrap().size().unwrap().events, 0);
}
