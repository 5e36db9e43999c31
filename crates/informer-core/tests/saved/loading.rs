//! A store that starts from a saved cache.

use informer_core::reflector::Resume;
use informer_core::store::SourcePoint;
use informer_core::{Delta, Origin, ResourceVersion, Scope, Store};

use super::{content, object, store};

fn in_namespace(name: &str) -> Scope {
    Scope::Namespace(name.into())
}

fn at(version: u64) -> ResourceVersion {
    version.to_string().as_str().into()
}

fn all_at(version: u64) -> SourcePoint {
    SourcePoint { resource_version: at(version), ..SourcePoint::nothing(Scope::All) }
}

fn resume(point: &SourcePoint) -> Option<Resume> {
    Resume::from_saved(&point.resource_version, point.has_unread)
}

#[test]
fn p1_what_was_unread_stays_so_until_a_list() {
    let mut store = Store::new();
    let unread = SourcePoint { has_unread: true, ..all_at(9) };
    let source = store.load([unread.clone()], [])[0];
    assert_eq!(resume(&unread), Some(Resume::List(at(9))));
    assert_eq!(store.checkpoint().sources, [unread]);
    let list = store.begin_replace(source);
    store.commit(list, at(10)).unwrap();
    assert_eq!(store.checkpoint().sources, [all_at(10)]);
    assert_eq!(resume(&all_at(10)), Some(Resume::Watch(at(10))));
    assert_eq!(resume(&SourcePoint::nothing(Scope::All)), None);
}

#[test]
fn p1_a_loaded_cache_can_be_read_and_is_not_synced() {
    let mut store = Store::new();
    let cache = store.cache();
    let before = cache.snapshot();
    let [source] = store.load([all_at(9)], [object("a/x", 3, ""), object("b/y", 4, "")])[..] else {
        panic!("one source")
    };
    assert_eq!((cache.len(), cache.resource_version(), cache.is_synced()), (2, at(9), false));
    assert!(before.is_empty() && before.revision() < cache.snapshot().revision());
    assert!(!store.is_source_synced(source));
    assert_eq!(store.source_version(source), at(9));
    assert_eq!(store.checkpoint().sources, [all_at(9)], "it may be saved again as it was");

    store.confirm(source);
    assert!(cache.is_synced() && store.is_source_synced(source));
    assert_eq!(store.checkpoint().sources, [all_at(9)]);
    store.validate();
}

#[test]
fn p2_a_list_over_a_loaded_cache_tells_what_differs() {
    let mut store = Store::new();
    let objects = [object("a/x", 3, ""), object("a/y", 4, ""), object("a/z", 5, "")];
    let source = store.load([all_at(9)], objects)[0];
    let mut list = store.begin_replace(source);
    list.keep_cached(object("a/x", 3, "").key());
    list.stage(object("a/y", 8, "new"));
    let changes: Vec<_> = store.commit(list, at(12)).unwrap().collect();
    let told: Vec<_> = changes
        .iter()
        .map(|change| match &change.delta {
            Delta::Added(new) => format!("+ {new:?}"),
            Delta::Updated { old, new } => format!("{old:?} -> {new:?}"),
            Delta::Deleted { last, .. } => format!("- {last:?}"),
        })
        .collect();
    assert_eq!(told, ["- a/z@5", "a/y@4 -> a/y@8"]);
    assert!(changes.iter().all(|change| change.origin == Origin::List));
    assert!(store.is_synced());
}

#[test]
fn p2_l12_a_list_older_than_what_was_saved_is_not_applied() {
    let mut store = Store::new();
    let source = store.load([all_at(9)], [object("a/x", 3, "")])[0];
    let list = store.begin_replace(source);
    assert!(store.commit(list, at(8)).unwrap_err().is_older_than_seen());
    assert_eq!(store.cache().len(), 1);
}

#[test]
fn p1_only_what_the_wanted_scopes_cover_is_taken() {
    let mut store = Store::new();
    let objects = [object("a/x", 3, ""), object("b/y", 4, "")];
    let a = SourcePoint { scope: in_namespace("a"), ..all_at(9) };
    let ids = store.load([a, SourcePoint::nothing(in_namespace("c"))], objects);
    let cache = store.cache();
    assert_eq!(content(&cache.snapshot()).into_keys().collect::<Vec<_>>(), ["a/x"]);
    // One of the two has nothing: there is no version that is true for both.
    assert!(cache.resource_version().is_unset());
    store.confirm(ids[0]);
    assert!(!cache.is_synced());
    let list = store.begin_replace(ids[1]);
    store.commit(list, at(20)).unwrap();
    assert!(cache.is_synced());
    assert_eq!(cache.resource_version(), at(9));
    store.validate();
}

#[test]
fn p1_a_checkpoint_is_of_one_moment() {
    let mut store = store(&[(Scope::All, 9)], &[object("a/x", 3, "")]);
    let before = store.checkpoint();
    let [SourcePoint { resource_version, .. }] = &before.sources[..] else { panic!("one source") };
    assert_eq!(resource_version, &at(9));
    let source = store.add_source(in_namespace("b"));
    store.upsert(source, object("b/y", 10, ""));
    store.remove_source(source);
    assert_eq!(before.snapshot.len(), 1);
    assert_eq!(before.snapshot.resource_version(), &at(9));
}
