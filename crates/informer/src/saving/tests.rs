//! The files that remain when the process ends in the middle of a save.

#![allow(clippy::unwrap_used, reason = "a test may stop at a surprise, in its helpers too")]

use std::fs;
use std::path::Path;

use informer_core::{Object, PlainStorage, Scope, Store, saved};
use tempfile::TempDir;

use super::replace::{Step, remove_abandoned, replace};
use super::{Description, SaveError, write_now};
use crate::saving::Savable;

fn description() -> Description {
    ["server", "resource", "kind", "label selector", "field selector", "share", "content", "transform"]
        .map(|name| (name, String::new()))
}

/// A cache whose objects take more than one write.
fn savable(versions: u64) -> Savable {
    let mut random = fastrand::Rng::with_seed(versions);
    let mut store = Store::new();
    let source = store.add_source(Scope::All);
    let mut list = store.begin_replace(source);
    for number in 0..300 {
        let noise: String = (0..1000).map(|_| random.alphanumeric()).collect();
        let json = format!(
            r#"{{"metadata":{{"name":"p{number}","resourceVersion":"{versions}"}},"spec":"{noise}"}}"#
        );
        list.stage(Object::from_json(json.as_bytes()).unwrap().into());
    }
    store.commit(list, versions.to_string().as_str().into()).unwrap();
    Savable { checkpoint: store.checkpoint(), schema: String::new() }
}

/// The version at which what is in the file was saved.
fn version(path: &Path) -> String {
    let bytes = fs::read(path).unwrap();
    let saved = saved::load(&bytes[..], &description(), 1 << 20, &PlainStorage).unwrap();
    assert_eq!(saved.objects.len(), 300);
    saved.sources[0].resource_version.to_string()
}

#[test]
fn p1_whenever_a_save_breaks_off_the_old_file_is_there_or_the_new_one() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("pods");
    write_now(&path, &description(), &savable(1), &mut |_| ()).unwrap();
    let mut steps = Vec::new();
    let mut seen = Vec::new();
    write_now(&path, &description(), &savable(2), &mut |step| {
        steps.push(step);
        // The file that the next process finds if this one ends here.
        seen.push(version(&path));
    })
    .unwrap();
    let writes = steps.iter().filter(|step| **step == Step::Written).count();
    assert!(writes > 2, "{steps:?}");
    assert_eq!(steps[0], Step::Created);
    // All of it is on the disk before it takes the old one's place.
    assert_eq!(steps[writes + 1..], [Step::Synced, Step::Renamed, Step::Finished]);
    assert!(seen[..writes + 2].iter().all(|version| version == "1"), "{seen:?}");
    assert!(seen[writes + 2..].iter().all(|version| version == "2"), "{seen:?}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing else is left");
}

#[test]
fn p1_a_save_that_fails_leaves_the_old_file_and_nothing_else() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("pods");
    fs::write(&path, "old").unwrap();
    let failed = replace(&path, &mut |_| (), |file| {
        file.write_all(b"new").map_err(SaveError::file("written"))?;
        Err::<(), _>(SaveError::empty())
    });
    assert!(failed.unwrap_err().is_empty());
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    assert!(replace(Path::new("/"), &mut |_| (), |_| Ok(())).is_err());
}

#[test]
fn p1_what_a_crash_left_is_removed_when_it_is_old() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("pods");
    let names = [".pods.1-0.tmp", ".pods.2-0.tmp", ".other.1-0.tmp", "pods"];
    for name in names {
        fs::write(directory.path().join(name), "").unwrap();
    }
    let two_hours_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    for old in [".pods.1-0.tmp", ".other.1-0.tmp", "pods"] {
        fs::File::options()
            .write(true)
            .open(directory.path().join(old))
            .unwrap()
            .set_modified(two_hours_ago)
            .unwrap();
    }
    // This directory looks like a temporary file, and cannot be removed. That must not prevent a save.
    fs::create_dir(directory.path().join(".pods.3-0.tmp")).unwrap();
    fs::File::open(directory.path().join(".pods.3-0.tmp")).unwrap().set_modified(two_hours_ago).unwrap();
    remove_abandoned(&path);
    let mut left: Vec<_> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, [".other.1-0.tmp", ".pods.2-0.tmp", ".pods.3-0.tmp", "pods"]);
}
