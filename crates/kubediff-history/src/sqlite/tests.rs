//! Tests that need this side of the interface: files of other formats.

use std::path::Path;

use rusqlite::Connection;
use serde_json::json;

use super::schema::{FORMAT, Step, beside, open};
use super::*;
use crate::{ObjectId, Observation, Origin, What};

fn cluster() -> Cluster {
    Cluster { uid: "cluster-1".to_owned(), name: None }
}

/// A file with one object, in a format that never was: its sinks do not know what they lost.
fn version_zero(path: &Path) {
    let mut history = History::open(path, &cluster(), &Settings::default()).unwrap();
    let mut batch = Batch::default();
    batch.observe(Observation {
        object: ObjectId { uid: "1".to_owned(), name: "web".to_owned(), ..ObjectId::default() },
        rv: "1".to_owned(),
        observed_at: Timestamp::UNIX_EPOCH,
        origin: Origin::List,
        body: crate::Body::redacted(json!({"a": 1}).to_string()),
        what: What::Known,
    });
    history.commit(&batch).unwrap();
    history.add_sink("slack").unwrap();
    history.connection.execute_batch("ALTER TABLE sinks DROP COLUMN lost; PRAGMA user_version = 0").unwrap();
}

const FROM_ZERO: &[Step] = &[|transaction| {
    transaction.execute_batch("ALTER TABLE sinks ADD COLUMN lost INTEGER NOT NULL DEFAULT 0")
}];

#[test]
fn an_older_file_is_migrated_after_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    version_zero(&path);
    let refused = Reader::open(&path).unwrap_err();
    assert!(matches!(refused, Error::Older { found: 0, .. }), "{refused}");

    drop(open(&path, &cluster(), &Settings::default(), FORMAT, FROM_ZERO).unwrap());
    let mut reader = Reader::open(&path).unwrap();
    assert_eq!(reader.sinks().unwrap()[0].lost, 0);
    let checked = reader.check().unwrap();
    assert_eq!((checked.versions, checked.problems), (1, Vec::new()));

    let backup = Connection::open(beside(&path, "-format-0")).unwrap();
    let format: u32 = backup.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(format, 0);
    assert!(backup.prepare("SELECT lost FROM sinks").is_err());
}

#[test]
fn a_migration_that_fails_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    version_zero(&path);
    let fails: &[Step] = &[|transaction| transaction.execute_batch("DROP TABLE sinks; DROP TABLE unknown")];
    assert!(open(&path, &cluster(), &Settings::default(), FORMAT, fails).is_err());
    std::fs::remove_file(beside(&path, "-format-0")).unwrap();
    drop(open(&path, &cluster(), &Settings::default(), FORMAT, FROM_ZERO).unwrap());
    assert_eq!(Reader::open(&path).unwrap().sinks().unwrap().len(), 1);
}

#[test]
fn a_format_without_a_way_to_this_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    version_zero(&path);
    let refused = History::open(&path, &cluster(), &Settings::default()).unwrap_err();
    assert!(matches!(refused, Error::Older { found: 0, .. }), "{refused}");
}

#[test]
fn a_newer_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    version_zero(&path);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", FORMAT + 1).unwrap();
    for refused in
        [History::open(&path, &cluster(), &Settings::default()).map(drop), Reader::open(&path).map(drop)]
    {
        assert!(matches!(refused, Err(Error::Newer { found: 2, known: 1, .. })), "{refused:?}");
    }
}
