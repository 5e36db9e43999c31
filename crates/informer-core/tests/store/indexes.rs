//! Indexes by values of the user's own types.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use informer_core::store::IndexFault;
use informer_core::{Index, Object, Snapshot};

use fuzzing::store::hush_expected_panics;
use fuzzing::store::pods::{self, Pod, names, pod, relist, synced};

fn tags(object: &Arc<Object>) -> Result<Vec<String>, Box<dyn std::error::Error + Send + Sync>> {
    pods::tags(object)
}

fn tagged(key: &str, version: &str, tags: &[&str]) -> Arc<Object> {
    Pod { key, version, tags, ..Pod::default() }.object()
}

fn values(index: &Index<String>, snapshot: &Snapshot) -> Vec<String> {
    let mut values: Vec<String> = index.values(snapshot).iter().map(|value| value.to_string()).collect();
    values.sort();
    values
}

#[test]
fn c2_removing_the_last_object_of_a_value_removes_the_value() {
    let (mut store, source) = synced([tagged("a/x", "3", &["red", "blue"]), tagged("a/y", "3", &["red"])], 5);
    let cache = store.cache();
    let index = cache.add_index(tags);
    assert_eq!(values(&index, &cache.snapshot()), ["blue", "red"]);
    store.delete(source, pod("a/x", 6));
    assert_eq!(values(&index, &cache.snapshot()), ["red"]);
    relist(&mut store, source, [], 7);
    assert!(values(&index, &cache.snapshot()).is_empty() && index.get("red").is_empty());
}

#[test]
fn f9_a_change_runs_user_code_as_long_as_there_is_an_index_of_the_user_s() {
    let (mut store, source) = synced([tagged("a/x", "3", &["red"])], 5);
    assert!(!store.runs_user_code(), "the index by namespace is ours");
    let index = store.cache().add_index(tags);
    assert!(store.runs_user_code());
    store.upsert(source, tagged("a/x", "6", &["blue"]));
    assert!(store.runs_user_code());
    drop(index);
    store.upsert(source, tagged("a/x", "7", &["blue"]));
    assert!(!store.runs_user_code());
}

#[test]
fn c2_an_update_changes_exactly_the_differing_values() {
    let calls = Arc::new(AtomicUsize::new(0));
    let (mut store, source) =
        synced([tagged("a/x", "3", &["red", "blue", "red"]), tagged("a/y", "3", &["red"])], 5);
    let cache = store.cache();
    let counted = calls.clone();
    let index = cache.add_index(move |object: &Arc<Object>| {
        counted.fetch_add(1, Ordering::Relaxed);
        tags(object)
    });
    store.upsert(source, tagged("a/x", "6", &["green", "blue"]));
    let snapshot = cache.snapshot();
    assert_eq!(values(&index, &snapshot), ["blue", "green", "red"]);
    assert_eq!(names(index.lookup(&snapshot, "red")), ["a/y@3"]);
    assert_eq!(names(index.lookup(&snapshot, "blue")), ["a/x@6"]);
    assert_eq!(names(&index.get("green")), ["a/x@6"]);
    assert_eq!((index.count(&snapshot, "red"), index.count(&snapshot, "none")), (1, 0));
    assert_eq!(calls.load(Ordering::Relaxed), 3, "once per version, never for what leaves");
    store.delete(source, pod("a/x", 7));
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    store.validate();
}

#[test]
fn c3_an_index_added_late_has_what_is_there() {
    let (mut store, source) = synced((0..300).map(|at| tagged(&format!("a/x{at}"), "3", &["red"])), 5);
    let cache = store.cache();
    let before = cache.snapshot();
    let index = cache.add_index(tags);
    assert_eq!(index.get("red").len(), 300);
    assert_eq!(index.lookup(&cache.snapshot(), "red").count(), 300);
    store.upsert(source, tagged("a/new", "6", &["red", "blue"]));
    // A snapshot from before is answered by asking the function.
    assert_eq!(index.lookup(&before, "red").count(), 300);
    assert_eq!((values(&index, &before), index.count(&before, "blue")), (vec!["red".to_owned()], 0));
    assert_eq!((index.get("red").len(), index.get("blue").len()), (301, 1));
}

#[test]
fn c3_a_name_clash_changes_nothing() {
    let (store, _) = synced([tagged("a/x", "3", &["red"])], 5);
    let cache = store.cache();
    assert!(cache.index_by_name::<String>("tags").is_none());
    let first = cache.add_named_index("tags", tags).unwrap();
    let error = cache.add_named_index("tags", |_: &Arc<Object>| Ok(vec![1_u32])).unwrap_err();
    assert!(error.to_string().contains("`tags`"), "{error}");
    drop(first);
    let found = cache.index_by_name::<String>("tags").unwrap();
    assert_eq!((found.name(), found.get("red").len()), (Some("tags"), 1));
    assert!(cache.index_by_name::<u32>("tags").is_none(), "its values are of another type");
}

#[test]
fn c3_an_index_goes_with_its_last_handle() {
    let calls = Arc::new(AtomicUsize::new(0));
    let (mut store, source) = synced([pod("a/x", 3)], 5);
    let counted = calls.clone();
    let index = store.cache().add_index(move |_: &Arc<Object>| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(vec![()])
    });
    let clone = index.clone();
    drop(index);
    store.upsert(source, pod("a/y", 6));
    assert_eq!((clone.get(&()).len(), calls.load(Ordering::Relaxed)), (2, 2));
    drop(clone);
    store.upsert(source, pod("a/z", 7));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert_eq!(Arc::strong_count(&calls), 1, "its function is gone");
    let again = store.cache().add_index(|object: &Arc<Object>| Ok(vec![object.key().name().to_owned()]));
    assert_eq!(again.get("z").len(), 1);
    store.validate();
}

#[test]
fn c3_a_function_that_fails_or_panics_leaves_one_object_out() {
    hush_expected_panics();
    let (mut store, source) = synced([tagged("a/x", "3", &["red", "fail"]), tagged("a/y", "3", &["red"])], 5);
    let cache = store.cache();
    let index = cache.add_named_index("tags", tags).unwrap();
    store.upsert(source, tagged("a/y", "6", &["panic"]));
    assert!(index.get("red").is_empty());
    assert_eq!(names(&cache.snapshot()), ["a/x@3", "a/y@6"], "the objects are there all the same");
    let [failed, panicked] = &cache.take_reports()[..] else { panic!("two reports") };
    assert_eq!(failed.fault, IndexFault::Failed("a tag asks for it".into()));
    assert_eq!(panicked.fault, IndexFault::Panicked("a tag asks for it".into()));
    assert_eq!(
        panicked.to_string(),
        "a/y at resourceVersion 6 is left out of index tags: its function panicked: a tag asks for it"
    );
    assert!(store.take_reports().is_empty());
    store.upsert(source, tagged("a/y", "7", &["red"]));
    store.upsert(source, tagged("a/x", "8", &["red"]));
    assert_eq!((index.get("red").len(), store.take_reports().len()), (2, 0), "the next good version is in");
    store.validate();
}

#[test]
fn c3_an_index_of_another_cache_answers_from_the_snapshot_that_it_is_asked_about() {
    let (one, _) = synced([tagged("a/x", "3", &["red"])], 5);
    let (two, _) = synced([tagged("b/x", "3", &["red"]), tagged("b/y", "4", &["red"])], 5);
    let index = one.cache().add_index(tags);
    let other = two.cache().add_index(tags);
    assert_eq!(names(index.lookup(&two.cache().snapshot(), "red")), ["b/x@3", "b/y@4"]);
    assert_eq!(names(other.lookup(&one.cache().snapshot(), "red")), ["a/x@3"]);
}

/// Values that all hash alike.
#[derive(PartialEq, Eq)]
struct Alike(String);

impl Hash for Alike {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[test]
fn c2_values_with_a_bad_hash_are_told_apart() {
    let of = |at: usize| {
        tagged(&format!("a/x{at}"), "3", &[&format!("t{}", at % 40), "t0", &format!("t{}", at % 7)])
    };
    let (mut store, source) = synced((0..200).map(of), 5);
    let cache = store.cache();
    let index = cache.add_index(|object: &Arc<Object>| Ok(tags(object)?.into_iter().map(Alike).collect()));
    let plain = cache.add_index(tags);
    for at in 0..100 {
        store.delete(source, pod(&format!("a/x{at}"), 6));
    }
    store.validate();
    for at in 0..40 {
        let tag = format!("t{at}");
        assert_eq!(names(&index.get(&Alike(tag.clone()))), names(&plain.get(&tag)));
    }
}

#[test]
fn c3_an_index_function_may_read_the_cache() {
    let (mut store, source) = synced([pod("a/x", 3)], 5);
    let cache = store.cache();
    let reader = cache.clone();
    let index = cache.add_index(move |object: &Arc<Object>| {
        let snapshot = reader.snapshot();
        Ok(vec![
            snapshot.namespace("a").count() + reader.len() + usize::from(reader.get(object.key()).is_some()),
        ])
    });
    store.upsert(source, pod("a/y", 6));
    assert_eq!((index.get(&3).len(), index.get(&2).len()), (1, 1));
}
