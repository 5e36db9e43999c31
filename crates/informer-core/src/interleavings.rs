//! Tests of the memory that threads share, with every order of the threads' steps, under loom (`cargo xtask loom`).
//!
//! loom knows locks and atomics, but not the reference counts of `Arc`, which are the standard library's here too. The place
//! from which readers load the state is a lock here (`sync`). Each of its two operations is one step, as without loom.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use loom::thread;
use serde_json::Value;

use crate::object::Arrival;
use crate::{
    Cache, HotSet, Index, Object, PlainStorage, ResourceVersion, Retention, Room, Scope, Selector, Shelf,
    SourceId, Storage, Store, Stored,
};

/// An object whose version is also its value under the index, and the value of its label.
fn object(name: &str, version: u64) -> Arc<Object> {
    let json = format!(
        r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}","labels":{{"at":"{version}"}}}}}}"#
    );
    Arc::new(Object::from_json(json.as_bytes()).unwrap())
}

/// A store of `a` at version 1.
fn store() -> (Store, SourceId) {
    let mut store = Store::new();
    let source = store.add_source(Scope::All);
    let mut list = store.begin_replace(source);
    list.stage(object("a", 1));
    store.commit(list, ResourceVersion::new("1")).unwrap();
    (store, source)
}

thread_local! {
    /// How often the index function was called. All threads of loom run on one thread of the system.
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

fn index(cache: &Cache) -> Index<String> {
    cache.add_index(|object: &Arc<Object>| {
        ASKED.with(|asked| asked.set(asked.get() + 1));
        Ok(vec![object.resource_version().to_string()])
    })
}

/// Checks that a snapshot is one of the states that `write` goes through, and returns its version.
fn check(cache: &Cache, index: Option<&Index<String>>) -> u64 {
    let snapshot = cache.snapshot();
    let reached: u64 = snapshot.resource_version().to_string().parse().unwrap();
    let mut objects: Vec<String> = snapshot.iter().map(|object| format!("{object:?}")).collect();
    objects.sort();
    let expected: &[&str] = match reached {
        1 => &["a@1"],
        2 => &["a@2"],
        3 => &["a@2", "b@3"],
        _ => &[],
    };
    assert_eq!(objects, expected);
    for version in ["1", "2", "3"] {
        let is_it = |object: &&Arc<Object>| object.resource_version() == &ResourceVersion::new(version);
        let hits = snapshot.iter().filter(is_it).count();
        if let Some(index) = index {
            assert_eq!(index.lookup(&snapshot, version).filter(is_it).count(), hits);
            assert_eq!(index.count(&snapshot, version), hits);
        }
    }
    reached
}

/// Writes `a` at 2, then `b` at 3: the second one by an event or by a list.
fn write(store: &mut Store, source: SourceId, by_list: bool) {
    store.upsert(source, object("a", 2)).unwrap();
    if by_list {
        let mut list = store.begin_replace(source);
        list.stage(object("a", 2));
        list.stage(object("b", 3));
        assert_eq!(store.commit(list, ResourceVersion::new("3")).unwrap().len(), 1);
    } else {
        store.upsert(source, object("b", 3)).unwrap();
    }
}

/// A storage that does not count as plain, so that versions from events are hot on arrival.
struct Elsewhere;

impl Storage for Elsewhere {
    fn keep(&self, bytes: Cow<'_, [u8]>) -> Stored {
        PlainStorage.keep(bytes)
    }
}

fn shelf() -> Arc<Shelf> {
    Shelf::new(&HotSet::new(1 << 20), Arc::new(Elsewhere), Retention::WhileHot)
}

#[test]
fn c12_two_who_decode_at_once_get_one_value() {
    loom::model(|| {
        let (object, shelf) = (object("a", 1), shelf());
        let (other, also) = (object.clone(), shelf.clone());
        let thread = thread::spawn(move || also.decode::<Value>(&other, Room::Evict).unwrap());
        let ours = shelf.decode::<Value>(&object, Room::Evict).unwrap();
        let theirs = thread.join().unwrap();
        assert!(Arc::ptr_eq(&ours, &theirs));
        assert!(Arc::ptr_eq(&ours, &object.decode::<Value>().unwrap()));
    });
}

#[test]
fn c12_whoever_reads_while_it_cools_gets_bytes_and_value() {
    loom::model(|| {
        let (known, shelf) = (object("a", 1), shelf());
        let object = Object::from_json(&known.json().unwrap()).unwrap();
        let object = Arc::new(object.moved(Arrival::Hot(&shelf)).unwrap());
        let (other, set) = (object.clone(), shelf.set().clone());
        shelf.admit(&object);
        let thread = thread::spawn(move || {
            // The first sweep clears its mark, the second one cools it.
            set.sweep(1);
            set.sweep(1);
        });
        let value = shelf.decode::<Value>(&other, Room::Evict).unwrap();
        assert_eq!(value["metadata"]["name"], "a");
        assert!(other.json().unwrap().starts_with(b"{"));
        thread.join().unwrap();
        assert!(other.json().unwrap().starts_with(b"{"));
    });
}

#[test]
fn c4_c5_a_snapshot_is_one_state_and_none_is_older_than_the_one_before() {
    for by_list in [false, true] {
        loom::model(move || {
            let (mut store, source) = store();
            let cache = store.cache();
            let index = index(&cache);
            let reader = thread::spawn(move || {
                let before = check(&cache, Some(&index));
                assert!(check(&cache, Some(&index)) >= before);
            });
            write(&mut store, source, by_list);
            reader.join().unwrap();
            assert_eq!(check(&store.cache(), None), 3);
        });
    }
}

#[test]
fn c3_an_index_that_is_added_beside_the_writer_is_complete() {
    for by_list in [false, true] {
        bounded(2).check(move || {
            let (mut store, source) = store();
            let cache = store.cache();
            let adder = thread::spawn(move || {
                let index = index(&cache);
                check(&cache, Some(&index));
                index
            });
            write(&mut store, source, by_list);
            let index = adder.join().unwrap();
            ASKED.with(|asked| asked.set(0));
            assert_eq!(check(&store.cache(), Some(&index)), 3);
            assert_eq!(ASKED.with(Cell::get), 0, "the answers come from the index");
            store.validate();
        });
    }
}

#[test]
fn c3_an_index_that_goes_beside_the_writer_leaves_nothing() {
    for by_list in [false, true] {
        bounded(2).check(move || {
            let (mut store, source) = store();
            let cache = store.cache();
            let going = index(&cache);
            let dropper = thread::spawn(move || drop(going));
            write(&mut store, source, by_list);
            dropper.join().unwrap();
            store.validate();
            let index = index(&store.cache());
            assert_eq!(check(&store.cache(), Some(&index)), 3);
        });
    }
}

#[test]
fn c3_of_two_indexes_of_one_name_one_is_refused() {
    bounded(3).check(|| {
        let (store, _) = store();
        let add = |cache: &Cache| cache.add_named_index("name", |_: &Arc<Object>| Ok(vec![1])).is_ok();
        let cache = store.cache();
        let other = thread::spawn(move || add(&cache));
        let ours = add(&store.cache());
        assert!(ours != other.join().unwrap());
        assert!(store.cache().index_by_name::<i32>("name").is_some());
    });
}

#[test]
fn c7_the_index_by_labels_comes_while_others_ask_and_write() {
    bounded(2).check(|| {
        let (mut store, source) = store();
        let selector: Selector = "at=2".parse().unwrap();
        let cache = store.cache();
        let ask = move |cache: &Cache| {
            let snapshot = cache.snapshot();
            let hits = snapshot.iter().filter(|object| object.labels().value("at") == Some("2")).count();
            assert_eq!(snapshot.select(&selector).count(), hits);
        };
        ask(&cache);
        let theirs = ask.clone();
        let other = thread::spawn(move || theirs(&cache));
        store.upsert(source, object("a", 2)).unwrap();
        other.join().unwrap();
        ask(&store.cache());
        store.validate();
    });
}

/// Limits the switches between threads that no lock causes: with all of them the tests would take hours.
fn bounded(preemptions: usize) -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder
}
