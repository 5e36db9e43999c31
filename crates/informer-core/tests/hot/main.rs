//! The hot set: what is decoded once for all, within a bound, and packed when it cools (contract C12).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may stop at a surprise, its helpers too")]

mod random;
mod rig;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use informer_core::{Object, PackedStorage, PlainStorage, Retention, Room, Storage, Stored};
use rig::{Counting, Rig, event, pod};
use serde::Deserialize;
use serde_json::Value;

/// Decodes of a type that counts them.
macro_rules! counted {
    ($name:ident, $count:ident) => {
        static $count: AtomicUsize = AtomicUsize::new(0);

        #[derive(Debug)]
        struct $name;

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $count.fetch_add(1, Ordering::SeqCst);
                serde::de::IgnoredAny::deserialize(from).map(|_| $name)
            }
        }
    };
}

#[test]
fn c12_an_events_version_is_decoded_once_for_all_who_look() {
    counted!(Once, DECODES);
    let mut rig = Rig::new(1 << 20, Retention::WhileHot, Arc::new(PackedStorage::new()));
    rig.list(10, &[pod("a", 1)]);
    rig.line(&event("MODIFIED", &pod("a", 11)));
    let object = rig.get("a");
    let first = rig.shelf().decode::<Once>(&object, Room::Evict).unwrap();
    for _ in 0..100 {
        assert!(Arc::ptr_eq(&first, &rig.shelf().decode(&object, Room::Evict).unwrap()));
        assert!(Arc::ptr_eq(&first, &object.decode().unwrap()), "also of those who know the object alone");
    }
    assert_eq!(DECODES.load(Ordering::SeqCst), 1);
    assert_eq!((rig.set().hits(), rig.set().misses()), (100, 1));
}

#[test]
fn c12_a_version_that_is_superseded_while_hot_is_never_stored() {
    let storage = Arc::new(Counting::default());
    let mut rig = Rig::new(1 << 20, Retention::WhileHot, storage.clone());
    rig.list(10, &[pod("a", 1)]);
    assert_eq!(storage.kept(), 1, "a list's item rests on arrival");
    for version in 11..=30 {
        rig.line(&event("MODIFIED", &pod("a", version)));
    }
    assert_eq!(storage.kept(), 1);
    rig.take_changes();
    let last = rig.get("a");
    let json = last.json().unwrap();
    rig.sweep();
    assert_eq!(storage.kept(), 1, "it was used since the last look");
    rig.sweep();
    assert_eq!((storage.kept(), rig.set().bytes()), (2, 0));
    assert_eq!(rig.get("a").json().unwrap(), json);
    assert!(Arc::ptr_eq(&last, &rig.get("a")), "in place: snapshots and mailboxes have it too");
}

#[test]
fn c12_a_version_that_only_a_snapshot_has_is_stored_too() {
    let storage = Arc::new(Counting::default());
    let mut rig = Rig::new(1 << 20, Retention::WhileHot, storage.clone());
    rig.list(10, &[pod("a", 1)]);
    rig.line(&event("MODIFIED", &pod("a", 11)));
    let snapshot = rig.cache().snapshot();
    rig.line(&event("MODIFIED", &pod("a", 12)));
    rig.sweep();
    rig.sweep();
    assert_eq!(storage.kept(), 3);
    assert!(snapshot.get_str("a").unwrap().json().unwrap().ends_with(b"}"));
}

#[test]
fn c12_what_a_stream_brings_before_its_list_is_complete_rests_on_arrival() {
    let storage = Arc::new(Counting::default());
    let mut rig = Rig::streaming(1 << 20, storage.clone());
    for name in ["a", "b", "c"] {
        rig.line(&event("ADDED", &pod(name, 5)));
    }
    assert_eq!((storage.kept(), rig.set().bytes()), (3, 0));
}

#[test]
fn c12_what_is_hot_stays_within_the_bound_and_what_is_used_stays_hot() {
    let bound = 64 << 10;
    let mut rig = Rig::new(bound, Retention::WhileHot, Arc::new(PackedStorage::new()));
    let names: Vec<String> = (0..500).map(|number| format!("pod-{number}")).collect();
    let items: Vec<String> = names.iter().zip(1..).map(|(name, version)| pod(name, version)).collect();
    rig.list(1_000, &items);
    let favourite = rig.get("pod-0");
    let first = rig.shelf().decode::<Value>(&favourite, Room::Evict).unwrap();
    for name in &names {
        let object = rig.get(name);
        rig.shelf().decode::<Value>(&object, Room::Evict).unwrap();
        assert!(rig.set().bytes() <= bound, "{} bytes", rig.set().bytes());
        assert!(Arc::ptr_eq(&first, &rig.shelf().decode(&favourite, Room::Evict).unwrap()));
    }
    assert!(rig.set().bytes() > bound / 2, "room is used");
    for (name, version) in names.iter().zip(1_001..) {
        rig.line(&event("MODIFIED", &pod(name, version)));
        assert!(rig.set().bytes() <= bound, "{} bytes after events", rig.set().bytes());
    }
}

#[test]
fn c12_a_look_at_everything_leaves_hot_what_is() {
    let mut rig = Rig::new(32 << 10, Retention::WhileHot, Arc::new(PackedStorage::new()));
    let items: Vec<String> = (0..300).map(|number| pod(&format!("pod-{number}"), number + 1)).collect();
    rig.list(1_000, &items);
    let used = rig.get("pod-7");
    let value = rig.shelf().decode::<Value>(&used, Room::Evict).unwrap();
    let snapshot = rig.cache().snapshot();
    for room in [Room::IfFree, Room::EvictIfHot] {
        for object in &snapshot {
            rig.shelf().decode::<Value>(object, room).unwrap();
        }
    }
    assert!(Arc::ptr_eq(&value, &rig.shelf().decode(&used, Room::Evict).unwrap()));
}

/// Versions that nobody decodes must not keep out what somebody does.
#[test]
fn c12_a_flood_of_events_leaves_room_for_values() {
    let mut rig = Rig::new(64 << 10, Retention::WhileHot, Arc::new(PackedStorage::new()));
    let items: Vec<String> = (0..300).map(|number| pod(&format!("pod-{number}"), number + 1)).collect();
    rig.list(1_000, &items);
    for version in 1_001..1_300 {
        rig.line(&event("MODIFIED", &pod(&format!("pod-{}", version - 1_001), version)));
    }
    let used = rig.get("pod-299");
    for version in 1_300..1_600_u64 {
        rig.line(&event("MODIFIED", &pod(&format!("pod-{}", version % 250), version)));
        rig.shelf().decode::<Value>(&used, Room::Evict).unwrap();
        assert!(rig.set().bytes() <= 64 << 10, "{} bytes", rig.set().bytes());
    }
    // It may have to wait for the next eviction, and is used often enough to stay from then on.
    assert!(rig.set().misses() < 10, "{} of 300 looks", rig.set().misses());
}

#[test]
fn c12_a_deletion_in_a_streaming_list_rests_on_arrival() {
    let storage = Arc::new(Counting::default());
    let mut rig = Rig::streaming(1 << 20, storage.clone());
    rig.line(&event("ADDED", &pod("a", 5)));
    rig.line(&event("DELETED", &pod("a", 6)));
    assert_eq!((storage.kept(), rig.shelf().hot_bytes()), (2, 0));
}

/// The user's: it panics at each version of `b`.
struct Panics;

impl Storage for Panics {
    fn keep(&self, bytes: Cow<'_, [u8]>) -> Stored {
        assert!(!bytes.windows(10).any(|part| part == b"\"name\":\"b\""), "as the test wants it");
        PlainStorage.keep(bytes)
    }
}

#[test]
fn a_storage_that_panics_concerns_one_version() {
    let mut rig = Rig::new(1 << 20, Retention::WhileHot, Arc::new(Panics));
    rig.list(10, &[pod("a", 1), pod("b", 2)]);
    rig.line(&event("MODIFIED", &pod("b", 11)));
    rig.line(&event("MODIFIED", &pod("a", 12)));
    rig.take_changes();
    rig.sweep();
    rig.sweep();
    assert_eq!(rig.set().bytes(), 0);
    for name in ["a", "b"] {
        assert!(rig.get(name).json().unwrap().ends_with(b"}"));
    }
}

#[test]
fn c10_the_account_of_what_rests_is_right_after_events_too() {
    let storage = Arc::new(Counting::default());
    let mut rig = Rig::new(1 << 20, Retention::WhileHot, storage);
    rig.list(10, &[]);
    for version in 1..=2_000_u64 {
        rig.line(&event("ADDED", &pod(&format!("pod-{version}"), 1_000 + version)));
    }
    rig.take_changes();
    rig.sweep();
    rig.sweep();
    let said = rig.cache().held_bytes();
    // The same objects at rest on arrival, whose account is exact.
    let mut other = Rig::new(0, Retention::WhileHot, Arc::new(Counting::default()));
    let items: Vec<String> =
        (1..=2_000).map(|number| pod(&format!("pod-{number}"), 1_000 + number)).collect();
    other.list(10_000, &items);
    let exact = other.cache().held_bytes();
    assert!(said.abs_diff(exact) <= exact / 5, "{said} said, {exact} exact");
}

#[test]
fn c12_values_that_are_kept_always_count_towards_no_bound_and_bytes_are_packed_all_the_same() {
    counted!(Always, DECODES);
    let storage = Arc::new(Counting::default());
    let mut rig = Rig::new(0, Retention::Always, storage.clone());
    rig.list(10, &[pod("a", 1), pod("b", 2)]);
    rig.line(&event("MODIFIED", &pod("a", 11)));
    let objects = [rig.get("a"), rig.get("b")];
    for _ in 0..3 {
        objects.iter().for_each(|object| drop(rig.shelf().decode::<Always>(object, Room::IfFree).unwrap()));
        rig.sweep();
    }
    assert_eq!((DECODES.load(Ordering::SeqCst), storage.kept(), rig.set().bytes()), (2, 3, 0));
    assert!(rig.shelf().hot_bytes() > 0);
    drop(objects);
    rig.line(&event("DELETED", &pod("a", 12)));
    rig.line(&event("DELETED", &pod("b", 13)));
    rig.take_changes();
    rig.sweep();
    rig.sweep();
    assert_eq!(rig.shelf().hot_bytes(), 0, "values end with their version");
}

#[test]
fn c12_with_no_room_at_all_nothing_is_hot() {
    let storage = Arc::new(Counting::default());
    let mut rig = Rig::new(0, Retention::WhileHot, storage.clone());
    rig.list(10, &[pod("a", 1)]);
    rig.line(&event("MODIFIED", &pod("a", 11)));
    let object = rig.get("a");
    let value = rig.shelf().decode::<Value>(&object, Room::Evict).unwrap();
    assert!(!Arc::ptr_eq(&value, &rig.shelf().decode(&object, Room::Evict).unwrap()));
    assert_eq!((storage.kept(), rig.shelf().hot_bytes()), (2, 0));
}

#[test]
fn bytes_that_rest_as_they_came_are_not_kept_twice() {
    let mut rig = Rig::new(1 << 20, Retention::WhileHot, Arc::new(PlainStorage));
    rig.list(10, &[pod("a", 1)]);
    rig.line(&event("MODIFIED", &pod("a", 11)));
    assert_eq!(rig.shelf().hot_bytes(), 0);
    let object = rig.get("a");
    rig.shelf().decode::<Value>(&object, Room::Evict).unwrap();
    assert!(rig.shelf().hot_bytes() > 0);
}

/// A drop runs user code, which may look at other objects: under a lock it would wait for itself.
#[test]
fn a_value_may_decode_others_when_it_is_dropped() {
    struct Looks(Arc<informer_core::Shelf>, Arc<Object>);

    impl Drop for Looks {
        fn drop(&mut self) {
            self.0.decode::<Value>(&self.1, Room::Evict).unwrap();
        }
    }

    thread_local! {
        static NEXT: std::cell::RefCell<Option<(Arc<informer_core::Shelf>, Arc<Object>)>> = const { std::cell::RefCell::new(None) };
    }

    impl<'de> Deserialize<'de> for Looks {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            serde::de::IgnoredAny::deserialize(from)?;
            let (shelf, object) = NEXT.with_borrow_mut(Option::take).unwrap();
            Ok(Self(shelf, object))
        }
    }

    let mut rig = Rig::new(4 << 10, Retention::WhileHot, Arc::new(PackedStorage::new()));
    let items: Vec<String> = (0..100).map(|number| pod(&format!("pod-{number}"), number + 1)).collect();
    rig.list(1_000, &items);
    let other = rig.get("pod-99");
    for number in 0..99 {
        NEXT.set(Some((rig.shelf().clone(), other.clone())));
        let object = rig.get(&format!("pod-{number}"));
        rig.shelf().decode::<Looks>(&object, Room::Evict).unwrap();
    }
    rig.sweep();
    rig.sweep();
    // A value that is still decoded when the last handle is dropped is hot, and goes with another sweep.
    rig.sweep();
    rig.sweep();
    assert_eq!(rig.set().bytes(), 0);
}

#[test]
fn c12_readers_and_the_one_who_packs_agree_all_the_time() {
    let mut rig = Rig::new(16 << 10, Retention::WhileHot, Arc::new(PackedStorage::new()));
    let items: Vec<String> = (0..50).map(|number| pod(&format!("pod-{number}"), number + 1)).collect();
    rig.list(1_000, &items);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3_usize {
            let (cache, shelf, done) = (rig.cache().clone(), rig.shelf().clone(), &done);
            scope.spawn(move || {
                let mut number = thread;
                while !done.load(Ordering::Relaxed) {
                    number = (number * 7 + 1) % 50;
                    let Some(object) = cache.get_str(&format!("pod-{number}")) else { continue };
                    let value = shelf.decode::<Value>(&object, Room::Evict).unwrap();
                    assert_eq!(value["metadata"]["resourceVersion"], object.resource_version().to_string());
                    let again: Value = serde_json::from_slice(&object.json().unwrap()).unwrap();
                    assert_eq!(*value, again);
                }
            });
        }
        for version in 1_001..3_000_u64 {
            rig.line(&event("MODIFIED", &pod(&format!("pod-{}", version % 50), version)));
            if version % 10 == 0 {
                rig.sweep();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    rig.take_changes();
    rig.sweep();
    rig.sweep();
    assert_eq!(rig.set().bytes(), 0);
}
