//! One writer, several readers, and indexes that come and go meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use informer_core::store::SourceId;
use informer_core::{Cache, Index, Object, ResourceVersion, Selector, Store};

use fuzzing::store::pods::{Pod, staged, synced, version};

const OBJECTS: u64 = 64;

/// Each state of the store has all objects of one namespace in one generation, or half-way to the next one in order:
/// the version says how far.
fn object(at: u64, generation: u64) -> Arc<Object> {
    let color = ["red", "blue", "green"][(generation % 3) as usize];
    let version = (generation * OBJECTS + at + 1).to_string();
    Pod { key: &format!("a/x{at}"), version: &version, labels: &[("color", color)], ..Pod::default() }
        .object()
}

fn color(object: &Arc<Object>) -> Result<Vec<String>, Box<dyn std::error::Error + Send + Sync>> {
    Ok(object.labels().value("color").map(str::to_owned).into_iter().collect())
}

/// The writer: generation after generation, in turn by events and by a list.
fn write(store: &mut Store, source: SourceId, generations: std::ops::Range<u64>) {
    for generation in generations {
        if generation % 4 == 0 {
            let list = staged(store.begin_replace(source), (0..OBJECTS).map(|at| object(at, generation)));
            let changes = store.commit(list, version((generation + 1) * OBJECTS)).unwrap();
            assert_eq!(changes.len() as u64, OBJECTS);
        } else {
            for at in 0..OBJECTS {
                store.upsert(source, object(at, generation)).unwrap();
            }
        }
    }
}

/// Whether a snapshot is one of the states that the writer made, and its indexes agree with it.
fn check(cache: &Cache, index: &Index<String>, selector: &Selector) -> ResourceVersion {
    let snapshot = cache.snapshot();
    let reached: u64 = snapshot.resource_version().to_string().parse().unwrap();
    let mut newest = 0;
    for object in &snapshot {
        let at: u64 = object.key().name()[1..].parse().unwrap();
        let version: u64 = object.resource_version().to_string().parse().unwrap();
        // The newest version of this object that is not newer than the snapshot.
        assert_eq!(version, (reached - at - 1) / OBJECTS * OBJECTS + at + 1, "at {reached}");
        newest = newest.max(version);
    }
    assert_eq!((snapshot.len() as u64, newest), (OBJECTS, reached));
    let is_red = |object: &&Arc<Object>| object.labels().value("color") == Some("red");
    let red = snapshot.iter().filter(is_red).count();
    assert_eq!(index.lookup(&snapshot, "red").filter(is_red).count(), red);
    assert_eq!(index.count(&snapshot, "red"), red);
    assert_eq!(snapshot.select(selector).filter(is_red).count(), red);
    assert_eq!(snapshot.namespace("a").count() as u64, OBJECTS);
    assert_eq!(index.get("red").iter().filter(|object| !is_red(object)).count(), 0);
    snapshot.resource_version().clone()
}

#[test]
fn c4_c5_readers_see_whole_states_while_the_writer_goes_on() {
    let (mut store, source) = synced((0..OBJECTS).map(|at| object(at, 0)), OBJECTS);
    let cache = store.cache();
    let index = cache.add_index(color);
    let selector: Selector = "color=red".parse().unwrap();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut before = ResourceVersion::UNSET;
                while !is_done.load(Ordering::Relaxed) {
                    let reached = check(&cache, &index, &selector);
                    assert!(!reached.is_older_than(&before));
                    before = reached;
                }
            });
        }
        write(&mut store, source, 1..400);
        is_done.store(true, Ordering::Relaxed);
    });
    store.validate();
    assert_eq!(check(&cache, &index, &selector), version(400 * OBJECTS));
}

#[test]
fn c3_indexes_come_and_go_beside_a_busy_writer() {
    let (mut store, source) = synced((0..OBJECTS).map(|at| object(at, 0)), OBJECTS);
    let cache = store.cache();
    let selector: Selector = "color=red".parse().unwrap();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let index = cache.add_index(color);
                    // Complete when it is there: nothing is ever missing.
                    check(&cache, &index, &selector);
                    check(&cache, &index, &selector);
                }
            });
        }
        write(&mut store, source, 1..400);
        is_done.store(true, Ordering::Relaxed);
    });
    store.validate();
    let index = cache.add_index(color);
    check(&cache, &index, &selector);
}

#[test]
fn c3_a_busy_writer_takes_over_an_index_that_cannot_catch_up() {
    let (mut store, source) = synced((0..4).map(|at| object(at, 0)), OBJECTS);
    let cache = store.cache();
    let (is_waiting, is_done) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
    let writer = thread::current().id();
    thread::scope(|scope| {
        let adder = scope.spawn(|| {
            let (reader, is_waiting) = (cache.clone(), is_waiting.clone());
            let seen = AtomicUsize::new(0);
            let index = cache.add_index(move |object: &Arc<Object>| {
                // The thread that adds the index is always behind: a new object arrives before it has read the last one.
                let is_adder = thread::current().id() != writer;
                let seen = seen.fetch_add(1, Ordering::Relaxed) + 1;
                while is_adder && reader.len() <= seen {
                    is_waiting.store(true, Ordering::Relaxed);
                    thread::yield_now();
                }
                color(object)
            });
            is_done.store(true, Ordering::Relaxed);
            index
        });
        for at in 100.. {
            store.upsert(source, object(at, 3)).unwrap();
            is_waiting.store(false, Ordering::Relaxed);
            for _ in 0..1_000 {
                if is_waiting.load(Ordering::Relaxed) || is_done.load(Ordering::Relaxed) {
                    break;
                }
                thread::yield_now();
            }
            if is_done.load(Ordering::Relaxed) {
                break;
            }
        }
        assert_eq!(adder.join().unwrap().get("red").len(), cache.len());
    });
    store.validate();
}
