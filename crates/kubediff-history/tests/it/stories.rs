//! Issue 21: stories and their members, as a fold stores them.

use std::collections::BTreeMap;
use std::time::Duration;

use kubediff_history::*;
use serde_json::json;

use crate::world::{at, change, changed, object, observation, open, retain};

fn folded(version: u32, through: u64, stories: &[(u64, u64, bool)], members: &[(u64, u64)]) -> Folded {
    let story = |(id, last, is_open): &(u64, u64, bool)| StoredStory {
        id: Number(*id),
        last: Number(*last),
        is_open: *is_open,
        content: json!({"id": id, "last": last}),
    };
    Folded {
        version,
        through: Number(through),
        stories: stories.iter().map(story).collect(),
        members: members.iter().map(|(member, story)| (Number(*member), Number(*story))).collect(),
    }
}

fn members(history: &History) -> BTreeMap<u64, u64> {
    let found = history.reader().unwrap().members(Number(0)..=Number(100)).unwrap();
    found.into_iter().map(|(member, story)| (member.0, story.0)).collect()
}

/// A pod with ten changes, one in each hour.
fn ten_changes(history: &mut History) {
    let pod = object("pods", Some("shop"), "cart", "p");
    for hour in 1..=10 {
        let verb = if hour == 1 { Verb::Added } else { Verb::Updated };
        let mut batch = Batch::default();
        let of = (changed(change(verb, &["kubelet"], &["status.phase"])), json!({"hour": hour}));
        batch.observe(observation(&pod, hour, at(3_600 * i64::try_from(hour).unwrap()), &of.1, of.0));
        history.commit(&batch).unwrap();
    }
}

#[test]
fn a_fold_goes_on_where_it_was_and_another_version_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut history = open(&path);
    ten_changes(&mut history);
    history.fold(&folded(1, 5, &[(1, 3, false), (4, 5, true)], &[(1, 1), (3, 1), (4, 4), (5, 4)])).unwrap();
    history.fold(&folded(1, 6, &[(4, 6, true)], &[(6, 4)])).unwrap();
    drop(history);

    let mut history = open(&path);
    let mut reader = history.reader().unwrap();
    assert_eq!(reader.folded().unwrap(), (1, Number(6)));
    let going_on: Vec<Number> = reader.open_stories().unwrap().iter().map(|story| story.id).collect();
    assert_eq!(going_on, [Number(4)]);
    assert_eq!(reader.story(Number(4)).unwrap().unwrap().content, json!({"id": 4, "last": 6}));
    assert_eq!(reader.story(Number(2)).unwrap(), None);
    assert_eq!(reader.members_of(Number(4)).unwrap(), [Number(4), Number(5), Number(6)]);
    assert_eq!(members(&history), [(1, 1), (3, 1), (4, 4), (5, 4), (6, 4)].into());
    assert_eq!(reader.check().unwrap().problems, [""; 0]);

    history.fold(&folded(2, 2, &[(1, 2, true)], &[(1, 1), (2, 1)])).unwrap();
    assert_eq!(reader.folded().unwrap(), (2, Number(2)));
    assert_eq!(members(&history), [(1, 1), (2, 1)].into());
}

#[test]
fn stories_go_with_their_records() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    ten_changes(&mut history);
    let stories = [(1, 3, false), (4, 8, true)];
    history.fold(&folded(1, 10, &stories, &[(1, 1), (3, 1), (4, 4), (5, 4), (8, 4)])).unwrap();
    let kept = Retention { age: Some(Duration::from_secs(4 * 3_600 + 60)), ..Retention::default() };
    retain(&mut history, &kept, at(36_000));
    // The last version before what is kept stays, but belongs to nothing.
    assert_eq!(members(&history), [(8, 4)].into());
    let mut reader = history.reader().unwrap();
    assert!(reader.story(Number(1)).unwrap().is_none() && reader.story(Number(4)).unwrap().is_some());
    // A fold that had read a record before it was removed stores no member that is none.
    history.fold(&folded(1, 10, &[(4, 8, true)], &[(2, 4), (9, 4)])).unwrap();
    assert_eq!(members(&history), [(8, 4), (9, 4)].into());
    assert_eq!(reader.check().unwrap().problems, [""; 0]);
}

#[test]
fn a_lineage_ends_at_the_namespace() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    let mut batch = Batch::default();
    let owned = |by: &str| json!({"metadata": {"ownerReferences": [{"uid": by, "controller": true}]}});
    for (of, by) in [
        (object("nodes", None, "n1", "n"), None),
        (object("deployments", Some("shop"), "cart", "d"), None),
        (object("pods", Some("shop"), "cart-a", "p"), Some("d")),
        (object("pods", Some("shop"), "mirror", "m"), Some("n")),
        (object("pods", Some("evil"), "forged", "f"), Some("d")),
        (object("pods", Some("shop"), "snake", "s"), Some("s")),
    ] {
        let body = by.map_or(json!({}), owned);
        let added = changed(ChangeRecord { verb: Verb::Added, ..ChangeRecord::default() });
        batch.observe(observation(&of, 1, at(0), &body, added));
    }
    history.commit(&batch).unwrap();
    let mut reader = history.reader().unwrap();
    let mut of = |uid: &str, namespace| -> Vec<String> {
        let (found, _) = reader.lineage(uid, namespace, Number(100)).unwrap();
        found.into_iter().map(|object| format!("{} {}", object.gvk.kind, object.name)).collect()
    };
    assert_eq!(of("p", Some("shop")), ["Pod cart-a", "Deployment cart"]);
    assert_eq!(of("m", Some("shop")), ["Pod mirror", "Node n1"]);
    assert_eq!(of("f", Some("evil")), ["Pod forged"]);
    // An Event in one namespace about an object of another one is about nothing.
    assert_eq!(of("p", Some("evil")), [""; 0]);
    assert_eq!(of("p", None), [""; 0]);
    assert_eq!(of("n", Some("shop")), ["Node n1"]);
    // The deployment comes later than this record.
    let (found, missing) = history.reader().unwrap().lineage("p", Some("shop"), Number(1)).unwrap();
    assert_eq!((found.len(), missing.as_deref()), (0, Some("p")));
    // An object that is its own controller has no end.
    assert!(of("s", Some("shop")).len() < 12);
}
