//! Issue 12, history store: a full disk is a typed error, and loses nothing acknowledged.

use std::path::Path;
use std::process::Command;

use fastrand::Rng;
use kubediff_history::*;

use crate::world::{at, body, change, changed, cluster, object, observation, open, retain};

fn batch(first: u64) -> Batch {
    let mut batch = Batch::default();
    for number in first..first + 50 {
        let object =
            object("pods", Some("shop"), &format!("pod-{}", number % 20), &format!("uid-{}", number % 20));
        let body = body(&mut Rng::with_seed(number), &object, number);
        let change = change(Verb::Updated, &["kubelet"], &["status.token"]);
        batch.observe(observation(&object, number, at(0), &body, changed(change)));
    }
    batch.reached("pods", (first + 49).to_string());
    batch
}

/// Writes until there is no room. Returns the last acknowledged number.
fn fill(history: &mut History, first: u64) -> u64 {
    let mut next = first;
    loop {
        match history.commit(&batch(next)) {
            Ok(last) => next = last.0 + 1,
            Err(error) => {
                assert!(error.is_full(), "{error:?}");
                return next - 1;
            }
        }
    }
}

fn assert_whole(path: &Path, last: u64) {
    let mut reader = Reader::open(path).unwrap();
    assert_eq!(reader.last().unwrap().unwrap().0, Number(last));
    assert_eq!(reader.positions().unwrap()["pods"], last.to_string());
    let checked = reader.check().unwrap();
    assert_eq!((checked.problems, checked.versions), (Vec::new(), last));
}

#[test]
fn a_full_file_is_an_error_and_keeps_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let settings = Settings { most_bytes: Some(1 << 20), ..Settings::default() };
    let mut history = History::open(&path, &cluster(), &settings).unwrap();
    let last = fill(&mut history, 1);
    assert!(last > 500, "{last}");
    assert_whole(&path, last);

    // Retention makes room in the same history, and the batch that found none is taken.
    let kept = Retention { count: Some(200), ..Retention::default() };
    let retained = retain(&mut history, &kept, at(0));
    assert_eq!(retained.complete_after, Number(last - 200));
    assert_eq!(history.commit(&batch(last + 1)).unwrap(), Number(last + 50));
    drop(history);

    // So does a greater limit.
    let mut history = open(&path);
    let mut next = last + 51;
    for _ in 0..40 {
        next = history.commit(&batch(next)).unwrap().0 + 1;
    }
    let mut reader = history.reader().unwrap();
    assert_eq!(reader.check().unwrap().problems, [""; 0]);
    assert_eq!(reader.last().unwrap().unwrap().0, Number(next - 1));
}

#[test]
fn a_full_disk_is_an_error_and_keeps_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(folder.path());
    if !mount.output().is_ok_and(|output| output.status.success()) {
        println!("not shown: this user may not mount a small disk");
        return;
    }
    let path = folder.path().join("history.db");
    let mut history = open(&path);
    let last = fill(&mut history, 1);
    assert!(last > 500, "{last}");
    let last = fill(&mut history, last + 1);
    assert_whole(&path, last);
    drop(history);
    // A writer that begins notes it, which needs some room.
    let more = ["-o", "remount,size=9m"];
    assert!(Command::new("mount").args(more).arg(folder.path()).status().unwrap().success());
    let history = open(&path);
    assert_whole(&path, last);
    drop(history);
    assert!(Command::new("umount").arg(folder.path()).status().unwrap().success());
}
