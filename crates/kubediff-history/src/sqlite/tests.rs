//! Tests that need this side of the interface: files of other formats.

use std::path::Path;

use rusqlite::Connection;
use serde_json::json;

use super::schema::{FORMAT, STEPS, Step, beside, open};
use super::*;
use crate::{ChangeRecord, History, Ids, Number, ObjectId, Observation, Origin, Reader, Verb, What};

fn cluster() -> Cluster {
    Cluster { uid: "cluster-1".to_owned(), name: None }
}

/// A file with one object, which was deleted in between, in format 1: that knows no ids.
fn version_one(path: &Path) {
    let mut history = History::open(path, &cluster(), &Settings::default()).unwrap();
    let mut batch = Batch::default();
    for (verb, what) in
        [(Verb::Added, What::Known), (Verb::Deleted, What::Change), (Verb::Added, What::Change)]
    {
        batch.observe(Observation {
            record: ChangeRecord {
                object: ObjectId { uid: "1".to_owned(), name: "web".to_owned(), ..ObjectId::default() },
                verb,
                rv: Some("1".to_owned()),
                origin: Origin::List,
                ..ChangeRecord::default()
            },
            body: crate::Body::redacted(json!({"a": 1}).to_string()),
            what,
            replaces: None,
        });
    }
    history.commit(&batch).unwrap();
    history.add_sink("slack").unwrap();
    let former = "DROP INDEX lives; DROP INDEX objects_by_owner; DROP INDEX objects_by_about; DROP INDEX versions_of_events;
        ALTER TABLE objects DROP COLUMN owner; ALTER TABLE objects DROP COLUMN about; ALTER TABLE objects DROP COLUMN first; ALTER TABLE objects DROP COLUMN returned;
        DROP INDEX versions_by_place; CREATE INDEX versions_by_namespace ON versions (namespace);
        DELETE FROM meta WHERE name IN ('ordered_from', 'disordered_until', 'event_bytes', 'events_after');
        DROP TABLE documents; DROP TABLE users; DROP TABLE authors; DROP TABLE stories; DROP TABLE members; DROP INDEX kinds_by_family; DELETE FROM meta WHERE name IN ('fold_version', 'folded_to');
        DROP TABLE timelines; DROP TABLE prints; DROP TABLE scrubs; DELETE FROM meta WHERE name = 'log'; PRAGMA user_version = 1";
    drop(history);
    Connection::open(path).unwrap().execute_batch(former).unwrap();
}

#[test]
fn an_older_file_is_migrated_after_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    version_one(&path);
    let refused = Reader::open(&path).unwrap_err();
    assert!(matches!(refused, Error::Older { found: 1, .. }), "{refused}");

    assert!(refused.to_string().contains("kubediff history migrate"), "{refused}");
    let backup = beside(&path, "-format-1");
    let other = Cluster { uid: "another".to_owned(), ..cluster() };
    let refused = History::migrate(&path, Some(&other), |_| {}).unwrap_err();
    assert!(matches!(refused, Error::OtherCluster { .. }) && !backup.exists(), "{refused}");
    assert_eq!(History::migrate(&path, Some(&cluster()), |_| {}).unwrap().as_ref(), Some(&backup));
    assert_eq!(History::migrate(&path, None, |_| {}).unwrap(), None);
    let mut reader = Reader::open(&path).unwrap();
    let checked = reader.check().unwrap();
    assert_eq!((checked.versions, checked.problems), (3, Vec::new()));
    // A record of format 1 has an id, too; a writer begins another timeline.
    let (former, id) = (reader.ids().unwrap(), |ids: &Ids, number| ids.of(Number(number)));
    drop(History::open(&path, &cluster(), &Settings::default()).unwrap());
    let ids = reader.ids().unwrap();
    assert!(id(&ids, 3) == id(&former, 3) && id(&ids, 3).ends_with("-0-3"), "{}", id(&ids, 3));
    assert!(!id(&ids, 4).ends_with("-0-4"), "{}", id(&ids, 4));

    let backup = Connection::open(backup).unwrap();
    let format: u32 = backup.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(format, 1);
    assert!(backup.prepare("SELECT first FROM timelines").is_err());
}

/// A copy of that name is somebody's, maybe of another file.
#[test]
fn k6_a_migration_replaces_no_file_and_leaves_none_beside_what_is_no_history() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    version_one(&path);
    std::fs::write(beside(&path, "-format-1"), "older").unwrap();
    assert_eq!(History::migrate(&path, None, |_| {}).unwrap(), Some(beside(&path, "-format-1.2")));
    assert_eq!(std::fs::read(beside(&path, "-format-1")).unwrap(), b"older");

    let other = folder.path().join("other");
    std::fs::write(&other, "").unwrap();
    assert!(matches!(History::migrate(&other, None, |_| {}), Err(Error::Foreign { .. })));
    assert!(!beside(&other, "-lock").exists());
}

#[test]
fn a_daemon_that_starts_migrates_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    version_one(&path);
    drop(History::open(&path, &cluster(), &Settings::default()).unwrap());
    assert!(beside(&path, "-format-1").exists());
    assert_eq!(Reader::open(&path).unwrap().check().unwrap().problems, [""; 0]);
}

#[test]
fn a_migration_that_fails_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    version_one(&path);
    let fails: &[Step] =
        &[|transaction| Ok(transaction.execute_batch("DROP TABLE sinks; DROP TABLE unknown")?)];
    assert!(open(&path, &cluster(), &Settings::default(), 2, fails).is_err());
    std::fs::remove_file(beside(&path, "-format-1")).unwrap();
    drop(open(&path, &cluster(), &Settings::default(), FORMAT, STEPS).unwrap());
    assert_eq!(Reader::open(&path).unwrap().sinks().unwrap().len(), 1);
}

#[test]
fn a_format_without_a_way_to_this_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    version_one(&path);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 0).unwrap();
    let refused = History::open(&path, &cluster(), &Settings::default()).unwrap_err();
    assert!(matches!(refused, Error::Older { found: 0, .. }), "{refused}");
}

#[test]
fn a_newer_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    version_one(&path);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", FORMAT + 1).unwrap();
    for refused in
        [History::open(&path, &cluster(), &Settings::default()).map(drop), Reader::open(&path).map(drop)]
    {
        assert!(matches!(refused, Err(Error::Newer { found: 6, known: 5, .. })), "{refused:?}");
    }
}
