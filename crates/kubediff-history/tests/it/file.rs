//! Which files are opened, backed up and trusted.

use std::collections::BTreeSet;
use std::io::{Seek, SeekFrom, Write};

use kubediff_history::*;
use serde_json::json;

use crate::world::{at, change, changed, cluster, commit, known, object, observation, open, retain};

fn some(history: &mut History, versions: u64) {
    let cart = object("deployments", Some("shop"), "cart", "1");
    for rv in 1..=versions {
        let mut batch = Batch::default();
        let mut random = fastrand::Rng::with_seed(rv);
        let text: String = (0..3_000).map(|_| random.alphanumeric()).collect();
        let body = json!({"spec": {"replicas": rv, "text": text}});
        let change = change(Verb::Updated, &["helm"], &["spec.replicas"]);
        batch.observe(observation(&cart, rv, at(0), &body, changed(change)));
        history.commit(&batch).unwrap();
    }
}

/// The second attack: a restored backup is moved to the place of a history that is written.
#[cfg(unix)]
#[test]
fn k1_a_history_that_is_replaced_takes_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut history = open(&path);
    some(&mut history, 2);
    Reader::open(&path).unwrap().back_up(folder.path().join("backup.db")).unwrap();
    std::fs::rename(folder.path().join("backup.db"), &path).unwrap();
    let cart = object("deployments", Some("shop"), "cart", "1");
    let mut batch = Batch::default();
    batch.observe(observation(&cart, 3, at(0), &json!({}), known()));
    let refused = history.commit(&batch).unwrap_err();
    assert!(matches!(refused, Error::Replaced { .. }) && !refused.is_passing(), "{refused}");
}

/// The third attack: somebody cleans up beside a daemon.
#[cfg(unix)]
#[test]
fn k1_a_history_whose_log_is_removed_takes_nothing_more_and_keeps_what_it_took() {
    for (end, opened) in [("-wal", "history.db"), ("-shm", "history.db"), ("-wal", "link.db")] {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("history.db"), folder.path().join("copy.db"));
        std::os::unix::fs::symlink(&path, folder.path().join("link.db")).unwrap();
        let mut history = open(&folder.path().join(opened));
        some(&mut history, 2);
        std::fs::remove_file(folder.path().join(format!("history.db{end}"))).unwrap();
        let mut batch = Batch::default();
        batch.note("a", "b");
        let refused = history.commit(&batch).unwrap_err();
        assert!(matches!(refused, Error::Replaced { .. }), "{end}: {refused}");
        // The file as a SIGKILL leaves it now.
        std::fs::copy(&path, &copy).unwrap();
        assert_eq!(Reader::open(&copy).unwrap().check().unwrap().versions, 2, "{end}");
    }
}

/// The third attack: a file that is emptied keeps its inode.
#[test]
fn k1_a_history_that_is_emptied_or_cut_takes_nothing_more_and_no_remains_are_written_into_it() {
    for length in [0, 4096] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.db");
        some(&mut open(&path), 20);
        let mut history = open(&path);
        let reader = history.reader().unwrap();
        some(&mut history, 20);
        std::fs::File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        let mut batch = Batch::default();
        batch.note("a", "b");
        let refused = history.commit(&batch).unwrap_err();
        assert!(matches!(refused, Error::Replaced { .. }), "{length}: {refused}");
        drop((history, reader));
        assert_eq!(path.metadata().unwrap().len(), length);
        if length == 0 {
            some(&mut open(&path), 1);
        }
    }
}

#[cfg(unix)]
#[test]
fn a_new_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut history = open(&path);
    let cart = object("deployments", Some("shop"), "cart", "1");
    let mut batch = Batch::default();
    batch.observe(observation(&cart, 1, at(0), &json!({}), known()));
    history.commit(&batch).unwrap();
    for end in ["", "-wal", "-shm"] {
        let file = folder.path().join(format!("history.db{end}"));
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", file.display());
    }
}

#[test]
fn a_file_has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let history = open(&path);
    let second = History::open(&path, &cluster(), &Settings::default());
    assert!(matches!(second, Err(Error::InUse { .. })), "{second:?}");
    drop(history);
    open(&path);
}

/// The third attack: two daemons wrote to one file by two of its names.
#[cfg(unix)]
#[test]
fn k1_a_file_has_one_writer_whatever_its_name_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let other = folder.path().join("other.db");
    let history = open(&path);
    let refused = || History::open(&other, &cluster(), &Settings::default()).unwrap_err();
    std::os::unix::fs::symlink(&path, &other).unwrap();
    assert!(matches!(refused(), Error::InUse { .. }), "{:?}", refused());
    std::fs::remove_file(&other).unwrap();
    std::fs::hard_link(&path, &other).unwrap();
    assert!(matches!(refused(), Error::Linked { names: 2, .. }), "{:?}", refused());
    std::fs::remove_file(&other).unwrap();
    std::os::unix::fs::symlink(&path, &other).unwrap();
    drop(history);
    open(&other);
}

#[test]
fn a_closed_file_is_whole_without_its_log_whoever_still_reads() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("history.db"), folder.path().join("copy.db"));
    let mut history = open(&path);
    some(&mut history, 10);
    let reader = history.reader().unwrap();
    drop(history);
    std::fs::copy(&path, &copy).unwrap();
    drop(reader);
    assert_eq!(Reader::open(&copy).unwrap().check().unwrap().versions, 10);
}

/// Issue 19, attack 14: a foreign program's transaction.
#[test]
fn k5_a_foreign_lock_is_waited_for_and_then_named_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut history = open(&path);
    some(&mut history, 1);
    let foreign = rusqlite::Connection::open(&path).unwrap();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut batch = Batch::default();
    batch.note("a", "b");
    let refused = history.commit(&batch).unwrap_err();
    assert!(matches!(refused, Error::Busy { .. }) && refused.is_passing(), "{refused}");
    foreign.execute_batch("ROLLBACK").unwrap();
    history.commit(&batch).unwrap();
    assert_eq!(history.reader().unwrap().notes().unwrap()["a"], "b");
}

#[test]
fn a_file_of_another_cluster_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    some(&mut open(&path), 1);
    let other = Cluster { uid: "cluster-2".to_owned(), name: None };
    let refused = History::open(&path, &other, &Settings::default()).unwrap_err();
    assert!(matches!(&refused, Error::OtherCluster { found, .. } if found == "cluster-1"), "{refused}");
    assert_eq!(Reader::open(&path).unwrap().cluster().unwrap(), cluster());
}

#[test]
fn a_file_that_is_no_history_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let text = "not a database, but longer than the header of one: ".repeat(40);
    std::fs::write(&path, &text).unwrap();
    for refused in
        [History::open(&path, &cluster(), &Settings::default()).map(drop), Reader::open(&path).map(drop)]
    {
        assert!(matches!(refused, Err(Error::Foreign { .. })), "{refused:?}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    let missing = Reader::open(folder.path().join("none"));
    assert!(matches!(missing, Err(Error::Missing { .. })), "{missing:?}");
}

#[test]
fn a_backup_is_whole_while_the_history_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("history.db"), folder.path().join("copy.db"));
    let mut history = open(&path);
    some(&mut history, 100);
    let mut reader = history.reader().unwrap();
    reader.back_up(&copy).unwrap();
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&copy).unwrap()) & 0o777, 0o600);
    some(&mut history, 10);
    let mut backup = Reader::open(&copy).unwrap();
    let checked = backup.check().unwrap();
    assert_eq!((checked.versions, checked.problems), (100, Vec::new()));
    assert!(reader.back_up(&copy).is_err(), "an existing file is not replaced");
    // A backup goes on as a history.
    drop(backup);
    some(&mut open(&copy), 5);
}

/// A check that cannot fail would be none: damage in the middle of the file is found, or the file is refused.
#[test]
fn damage_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    some(&mut open(&path), 100);
    let whole = std::fs::read(&path).unwrap();
    let pages = whole.len() / 4096;
    let (mut damaged, mut found) = (0, 0);
    for page in (1..pages).step_by(3) {
        std::fs::write(&path, &whole).unwrap();
        let mut file = std::fs::File::options().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(page as u64 * 4096 + 2048)).unwrap();
        file.write_all(&[0x5a; 1024]).unwrap();
        drop(file);
        damaged += 1;
        let sound = Reader::open(&path).and_then(|mut reader| reader.check());
        found += usize::from(!sound.is_ok_and(|checked| checked.problems.is_empty()));
    }
    // Damage in a page's unused middle harms nothing.
    assert!(found * 2 > damaged, "{found} of {damaged}");
}

/// The eighth attack: one flipped bit in a name, a uid or a resourceVersion changed answers of a history that was "sound".
#[test]
fn a_version_that_differs_from_its_content_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut history = open(&path);
    let cart = object("deployments", Some("shop"), "cart", "1");
    let metadata = json!({"name": "cart", "namespace": "shop", "uid": cart.uid, "resourceVersion": "1"});
    let body = json!({"kind": cart.gvk.kind, "metadata": metadata});
    let mut batch = Batch::default();
    batch.observe(observation(&cart, 1, at(0), &body, known()));
    history.commit(&batch).unwrap();
    let problems = || Reader::open(&path).unwrap().check().unwrap().problems;
    assert_eq!(problems(), [""; 0]);
    let foreign = rusqlite::Connection::open(&path).unwrap();
    for (field, damage, mend) in [
        ("resourceVersion", "UPDATE versions SET rv = '0'", "UPDATE versions SET rv = '1'"),
        ("name", "UPDATE objects SET name = 'cars'", "UPDATE objects SET name = 'cart'"),
        ("uid", "UPDATE objects SET uid = uid || '0'", "UPDATE objects SET uid = '1'"),
        ("namespace", "UPDATE namespaces SET name = 'shot'", "UPDATE namespaces SET name = 'shop'"),
    ] {
        foreign.execute_batch(damage).unwrap();
        let found = problems();
        assert!(found.contains(&format!("version 1 has another {field} than its content")), "{found:?}");
        foreign.execute_batch(mend).unwrap();
    }
}

#[test]
fn each_write_is_another_revision_and_reading_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut history = open(&path);
    some(&mut history, 3);
    let (mut reader, mut other) = (Reader::open(&path).unwrap(), Reader::open(&path).unwrap());
    let mut seen = BTreeSet::from([reader.revision().unwrap()]);
    let mut note = Batch::default();
    note.note("a", "b");
    let writes: [&dyn Fn(&mut History); 4] = [
        &|history| some(history, 1),
        &|history| history.commit(&note).map(drop).unwrap(),
        &|history| history.fold(&Folded { version: 7, ..Folded::default() }).unwrap(),
        &|history| {
            let few = Retention { count: Some(1), ..Retention::default() };
            assert!(retain(history, &few, at(0)).versions > 0);
        },
    ];
    for (at, write) in writes.iter().enumerate() {
        write(&mut history);
        let revision = reader.revision().unwrap();
        assert!(seen.insert(revision), "write {at}");
        assert!(!other.records(&Filter::default(), &Page::newest(9)).unwrap().more);
        assert_eq!((reader.revision().unwrap(), reader.last().is_ok()), (revision, true));
        assert_eq!(reader.revision().unwrap(), revision);
    }
}

/// Issue 19, attack 11: a history that was lost, and one that was restored.
#[test]
fn k6_no_id_is_given_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (path, backup) = (folder.path().join("history.db"), folder.path().join("backup.db"));
    let mut given = std::collections::BTreeSet::new();
    let mut write = |path: &std::path::Path, numbers: std::ops::Range<u64>| {
        let mut history = open(path);
        let web = object("pods", Some("shop"), "web", "1");
        let ids = history.reader().unwrap().ids().unwrap();
        for number in numbers {
            let what = changed(change(Verb::Updated, &[], &["spec"]));
            commit(&mut history, [observation(&web, number, at(0), &json!({"spec": number}), what)]);
            assert!(given.insert(ids.of(Number(number))), "{} is given twice", ids.of(Number(number)));
        }
        ids
    };
    let first = write(&path, 1..4);
    crate::store::read(&path).back_up(&backup).unwrap();
    let ids = write(&path, 4..7);
    assert_eq!(ids.of(Number(2)), first.of(Number(2)), "a record keeps its id");
    std::fs::rename(&backup, &path).unwrap();
    let restored = write(&path, 4..8);
    assert_eq!(restored.of(Number(2)), first.of(Number(2)), "also in a copy");
    std::fs::remove_file(&path).unwrap();
    write(&path, 1..4);
    let log = first.of(Number(1));
    let parts: Vec<usize> = log.split('-').map(str::len).collect();
    assert_eq!(parts, [8, 4, 4, 4, 12, 13, 1], "{log}");
    // Writers that recorded nothing leave no timeline, and old ones go with their records.
    for _ in 0..3 {
        write(&path, 4..4);
    }
    assert!(format!("{:?}", write(&path, 4..4)).matches("Number").count() == 2);
}

#[test]
fn k5_a_run_by_size_makes_room_for_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    let web = object("pods", Some("shop"), "web", "1");
    let mut random = fastrand::Rng::with_seed(1);
    let mut write = |history: &mut History| {
        let observed = (0..100).map(|rv| {
            let text: String = (0..300).map(|_| random.alphanumeric()).collect();
            let what = changed(change(Verb::Updated, &["helm"], &["spec"]));
            observation(&web, rv, at(0), &json!({"spec": text}), what)
        });
        commit(history, observed.collect::<Vec<_>>());
    };
    let kept = Retention { bytes: Some(2 << 20), ..Retention::default() };
    let mut run = || {
        write(&mut history);
        retain(&mut history, &kept, at(0)).versions
    };
    while run() == 0 {}
    assert_eq!(run(), 0, "a few changes more");
    assert!((0..20).any(|_| run() > 0));
}

#[test]
fn retention_by_size_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut history = open(&path);
    let web = object("pods", Some("shop"), "web", "1");
    let mut random = fastrand::Rng::with_seed(1);
    let mut write = |history: &mut History| {
        for rv in 0..300 {
            let text: String = (0..3_000).map(|_| random.alphanumeric()).collect();
            let what = changed(change(Verb::Updated, &["helm"], &["spec"]));
            commit(history, [observation(&web, rv, at(0), &json!({"spec": text}), what)]);
        }
    };
    // A history that is closed has no log beside it.
    let reopened = |history: History| {
        drop(history);
        (open(&path), std::fs::metadata(&path).unwrap().len())
    };
    write(&mut history);
    let kept = Retention { bytes: Some(400 << 10), ..Retention::default() };
    let retained = retain(&mut history, &kept, at(0));
    assert!(retained.versions > 100 && retained.versions < 300, "{retained:?}");
    write(&mut history);
    let (mut history, full) = reopened(history);
    for _ in 0..4 {
        retain(&mut history, &kept, at(0));
        write(&mut history);
    }
    let (history, size) = reopened(history);
    assert!(size <= full * 6 / 5, "{size} after {full}");
    assert_eq!(history.reader().unwrap().check().unwrap().problems, [""; 0]);
}
