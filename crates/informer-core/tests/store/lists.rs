//! Lists and re-lists.

use std::sync::{Arc, Weak};

use informer_core::{Delta, ResourceVersion, Scope, Store};

use fuzzing::store::pods::{Pod, names, pod, relist, shorts, staged, synced, version};

#[test]
fn l10_an_unchanged_item_is_not_staged() {
    let (mut store, source) = synced([pod("a/x", 3), pod("a/y", 4)], 5);
    let mut list = store.begin_replace(source);
    list.stage(pod("a/y", 6));
    list.stage(pod("a/x", 3));
    assert_eq!(list.staged_len(), 1);
    assert_eq!(shorts(store.commit(list, version(7)).unwrap()), ["l~a/y@4>6"]);
    assert!(store.cache().is_unchanged("a/x", &version(3)));
    assert!(!store.cache().is_unchanged("a/x", &version(4)));
}

#[test]
fn l11_an_interrupted_list_leaves_no_trace() {
    let (mut store, source) = synced([pod("a/x", 3), pod("a/y", 4)], 5);
    let list = staged(store.begin_replace(source), [pod("a/x", 6), pod("b/new", 7)]);
    assert_eq!(
        names(&store.cache().snapshot()),
        ["a/x@3", "a/y@4"],
        "readers see the old content throughout"
    );
    drop(list);
    assert_eq!(names(&store.cache().snapshot()), ["a/x@3", "a/y@4"]);
    let changes = relist(&mut store, source, [pod("a/x", 6), pod("b/new", 7)], 8);
    assert_eq!(shorts(&changes), ["l-a/y@4", "l~a/x@3>6", "l+b/new@7"]);
}

#[test]
fn l12_an_older_list_is_refused() {
    let (mut store, source) = synced([pod("a/x", 3)], 5);
    store.delete(source, pod("a/x", 9));
    let list = staged(store.begin_replace(source), [pod("a/x", 3)]);
    let error = store.commit(list, version(8)).unwrap_err();
    assert!(error.is_older_than_seen() && !error.is_unknown_source());
    assert!(error.to_string().contains('8') && error.to_string().contains('9'), "{error}");
    assert!(store.cache().is_empty());
    assert_eq!(store.resource_version(), version(9));
}

/// As a transform leaves it out at one version, and keeps it at the next.
#[test]
fn l12_d6_what_left_a_restored_list_comes_back_at_a_version_before_the_cached_one() {
    let (mut store, source) = synced([pod("a/x", 40)], 40);
    let mut list = store.begin_restored_replace(source);
    list.delete_key(pod("a/x", 8).key(), &version(8));
    list.stage(pod("a/x", 14));
    store.commit(list, version(14)).unwrap();
    assert_eq!(names(&store.cache().snapshot()), ["a/x@14"]);
    store.validate();
}

#[test]
fn l12_a_restored_server_is_followed() {
    let of = |key, version, uid| Pod { key, version, uid, ..Pod::default() }.object();
    let (mut store, source) =
        synced([of("a/x", "5", "1"), of("a/y", "6", "2"), of("a/z", "90", "3"), of("a/w", "7", "4")], 100);
    let mut list = store.begin_restored_replace(source);
    let list = {
        list.stage(of("a/x", "5", "1"));
        list.stage(of("a/y", "6", "other"));
        list.stage(of("a/z", "4", "3"));
        assert_eq!(list.staged_len(), 2, "what is equal is not held");
        list
    };
    let changes: Vec<_> = store.commit(list, version(50)).unwrap().collect();
    assert_eq!(shorts(&changes), ["l-a/w@7", "l~a/y@6>6", "l~a/z@90>4"]);
    assert_eq!((store.resource_version(), store.source_version(source)), (version(50), version(50)));
    assert_eq!(shorts(store.upsert(source, of("a/z", "51", "3"))), ["w~a/z@4>51"]);
    store.validate();
}

#[test]
fn l12_a_restored_server_that_nobody_has_noticed_is_followed_by_the_next_list() {
    // It has come further than 10 by the time that it is asked again; what was written at 9 it has never had.
    let (mut store, source) = synced([pod("a/x", 9), pod("a/y", 10), pod("a/z", 4)], 10);
    let mut list = staged(store.begin_replace(source), [pod("a/x", 3), pod("a/y", 2)]);
    list.keep_cached(&"a/z".parse().unwrap());
    // Nothing says so of an object that is newer than the list.
    store.upsert(source, pod("a/y", 12));
    assert_eq!(
        shorts(store.commit(list, version(11)).unwrap_or_default()),
        [""; 0],
        "older than what was seen"
    );
    let list = staged(store.begin_replace(source), [pod("a/x", 3), pod("a/y", 12), pod("a/z", 4)]);
    assert_eq!(shorts(store.commit(list, version(12)).unwrap()), ["l~a/x@9>3"]);
    store.validate();
}

#[test]
fn l12_what_is_newer_than_the_list_stays() {
    let (mut store, source) = synced([pod("a/x", 3)], 5);
    let list = staged(store.begin_replace(source), [pod("a/x", 3), pod("a/y", 4)]);
    let other = store.add_source(Scope::Namespace("a".into()));
    store.upsert(other, pod("a/x", 9));
    assert_eq!(shorts(store.commit(list, version(8)).unwrap()), ["l+a/y@4"]);
    let mut list = staged(store.begin_replace(source), [pod("a/x", 3)]);
    list.keep_cached(&"a/x".parse().unwrap());
    list.stage(pod("a/y", 4));
    assert_eq!(
        shorts(store.commit(list, version(10)).unwrap()),
        [""; 0],
        "of two versions the newest counts"
    );
    store.validate();
}

#[test]
fn l12_w8_of_a_restored_server_nothing_is_kept_unread() {
    // The cached state is of a past that the server has not had: its next version, 51, would not be news.
    let (mut store, source) = synced([pod("a/x", 90)], 100);
    let mut list = store.begin_restored_replace(source);
    list.keep_cached(&"a/x".parse().unwrap());
    assert_eq!(shorts(store.commit(list, version(50)).unwrap()), ["l-a/x@90"]);
    assert_eq!(shorts(store.upsert(source, pod("a/x", 51))), ["w+a/x@51"]);
}

#[test]
fn l12_w11_an_older_event_does_not_undo_what_a_restored_list_has_said() {
    let (mut store, source) = synced([pod("a/x", 4), pod("a/y", 4)], 100);
    let mut list = staged(store.begin_restored_replace(source), [pod("a/x", 4), pod("a/y", 4)]);
    list.stage(pod("a/x", 2));
    list.delete(pod("a/y", 3));
    assert_eq!(shorts(store.commit(list, version(50)).unwrap()), [""; 0]);
    assert_eq!(names(&store.cache().snapshot()), ["a/x@4", "a/y@4"]);
}

#[test]
fn l12_f7_a_restored_server_is_followed_though_a_later_namespace_is_denied() {
    let mut store = Store::new();
    let a = store.add_source(Scope::Namespace("a".into()));
    relist(&mut store, a, [], 100);
    let denied = store.add_source(Scope::Namespace("denied".into()));
    let list = store.begin_restored_replace(a);
    store.commit(list, version(50)).unwrap();
    assert_eq!(store.resource_version(), version(50));
    assert!(!store.is_source_synced(denied));
}

#[test]
fn c5_f7_the_version_is_of_what_is_left() {
    let mut store = Store::new();
    let [a, b] = ["a", "b"].map(|namespace| store.add_source(Scope::Namespace(namespace.into())));
    relist(&mut store, a, [], 100);
    relist(&mut store, b, [], 100);
    store.remove_source(b);
    assert_eq!(store.resource_version(), version(100));
    // The server went back, which `a` has not noticed yet.
    let later = store.add_source(Scope::Namespace("b".into()));
    relist(&mut store, later, [], 50);
    assert_eq!(store.resource_version(), version(100), "never back by itself");
    store.remove_source(a);
    assert_eq!(store.resource_version(), version(50));
    store.remove_source(later);
    assert_eq!(store.cache().resource_version(), ResourceVersion::UNSET);
}

#[test]
fn h10_a_deletion_names_the_incarnation_that_was_known() {
    let of = |version, uid| Pod { key: "a/x", version, uid, ..Pod::default() }.object();
    let last = |change: informer_core::Change| match change.delta {
        Delta::Deleted { last, .. } => last.uid().to_string(),
        other => panic!("{other:?}"),
    };
    // The second incarnation came and went between two looks, or could not be read.
    let (mut store, source) = synced([of("3", "first")], 5);
    assert_eq!(last(store.delete(source, of("9", "second")).unwrap()), "first");
    let (mut store, source) = synced([of("3", "first")], 5);
    let mut list = store.begin_replace(source);
    list.stage(of("8", "second"));
    list.delete(of("9", "second"));
    assert_eq!(last(store.commit(list, version(9)).unwrap().next().unwrap()), "first");
}

/// Else the last change of a large list would free the objects of all others at once.
#[test]
fn d7_the_old_state_of_an_object_is_freed_with_its_change() {
    let pods = |version| ["a/x", "a/y"].map(|key| pod(key, version));
    for later in [Vec::new(), pods(6).to_vec()] {
        let first = pods(3);
        let held = first.each_ref().map(Arc::downgrade);
        let (mut store, source) = synced(first, 5);
        let list = staged(store.begin_replace(source), later);
        let mut changes = store.commit(list, version(9)).unwrap();
        assert_eq!((changes.len(), held.each_ref().map(Weak::strong_count)), (2, [1, 1]));
        drop(changes.next());
        assert_eq!((changes.len(), held.each_ref().map(Weak::strong_count)), (1, [0, 1]));
        drop(changes.next());
        assert!(changes.is_empty() && changes.next().is_none());
    }
}

/// A slot is free for a new object as soon as a deletion of the same list has left it.
#[test]
fn d7_an_addition_in_the_slot_of_a_deletion_is_no_update() {
    let (mut store, source) = synced([pod("a/x", 3), pod("a/y", 4)], 5);
    assert_eq!(shorts(relist(&mut store, source, [pod("a/y", 4), pod("a/z", 8)], 9)), ["l-a/x@3", "l+a/z@8"]);
}

#[test]
fn d1_a_deletion_and_a_relist_with_a_new_object_are_both_told() {
    let (mut store, source) = synced([pod("a/x", 3)], 5);
    let mut changes: Vec<_> = store.delete(source, pod("a/x", 6)).into_iter().collect();
    changes.extend(relist(&mut store, source, [pod("a/x", 7)], 8));
    assert_eq!(shorts(&changes), ["w-a/x@3>6", "l+a/x@7"]);
}

#[test]
fn d2_h10_a_missed_deletion_is_told_once_with_the_newest_known_state() {
    let (mut store, source) = synced([pod("a/x", 3), pod("a/y", 3)], 5);
    store.upsert(source, pod("a/x", 6));
    assert_eq!(shorts(relist(&mut store, source, [pod("a/y", 3)], 9)), ["l-a/x@6"]);
    assert!(relist(&mut store, source, [pod("a/y", 3)], 10).is_empty());
}

#[test]
fn d3_two_relists_before_anything_is_drained_tell_each_deletion_once() {
    let (mut store, source) = synced([pod("a/x", 3), pod("a/y", 3), pod("a/z", 3)], 5);
    let mut changes = relist(&mut store, source, [pod("a/x", 6), pod("a/y", 3)], 9);
    changes.extend(relist(&mut store, source, [pod("a/y", 3)], 10));
    changes.extend(relist(&mut store, source, [pod("a/y", 3)], 11));
    assert_eq!(shorts(&changes), ["l-a/z@3", "l~a/x@3>6", "l-a/x@6"]);
}

#[test]
fn d7_deletions_come_first_and_the_rest_in_list_order() {
    let (mut store, source) = synced(["a/1", "a/2", "a/3", "a/4"].map(|key| pod(key, 3)), 5);
    let list = ["b/9", "a/3", "b/1", "a/2"].map(|key| pod(key, 6));
    let changes = relist(&mut store, source, list, 9);
    assert_eq!(shorts(&changes[..2]), ["l-a/1@3", "l-a/4@3"]);
    assert_eq!(shorts(&changes[2..]), ["l+b/9@6", "l~a/3@3>6", "l+b/1@6", "l~a/2@3>6"]);
}

#[test]
fn s3_events_before_the_end_of_a_streaming_list_count() {
    let (mut store, source) = synced([pod("a/kept", 3), pod("a/gone", 3), pod("a/back", 3)], 5);
    let mut list = store.begin_replace(source);
    ["a/kept", "a/gone", "a/back"].iter().for_each(|key| list.keep_cached(pod(key, 3).key()));
    list.stage(pod("a/new", 6));
    list.stage(pod("a/new", 6));
    list.stage(pod("a/new", 8));
    list.stage(pod("a/new", 7));
    list.stage(pod("a/short-lived", 7));
    list.delete(pod("a/gone", 9));
    list.delete(pod("a/gone", 2));
    list.delete(pod("a/back", 9));
    list.delete(pod("a/short-lived", 10));
    list.delete(pod("a/never-seen", 10));
    list.stage(pod("a/gone", 3));
    list.stage(pod("a/back", 11));
    list.delete(pod("a/kept", 2));
    let changes: Vec<_> = store.commit(list, version(12)).unwrap().collect();
    assert_eq!(shorts(&changes), ["l-a/gone@3>9", "l+a/new@8", "l~a/back@3>11"]);
    let Delta::Deleted { last, .. } = &changes[0].delta else { panic!("{changes:?}") };
    assert_eq!(last.resource_version(), &version(9), "the event's state is newer than the cache's");
    store.validate();
}

#[test]
fn s9_an_empty_list_syncs() {
    let (store, _) = synced([], 5);
    assert!(store.is_synced() && store.cache().is_synced());
    assert_eq!(store.resource_version(), version(5));
}

#[test]
fn w8_what_cannot_be_read_stays_as_it_is() {
    let (mut store, source) = synced([pod("a/x", 3)], 5);
    let mut list = store.begin_replace(source);
    list.keep_cached(pod("a/x", 3).key());
    list.keep_cached(pod("a/y", 3).key());
    assert!(store.commit(list, version(6)).unwrap().is_empty());
}

/// A slot that a list counts on is not given to another object meanwhile.
#[test]
fn l10_what_a_list_keeps_is_not_mistaken_for_another_object() {
    let mut store = Store::new();
    let all = store.add_source(Scope::All);
    let other = store.add_source(Scope::Namespace("b".into()));
    relist(&mut store, all, [pod("a/x", 3), pod("b/x", 3)], 5);
    let mut list = store.begin_replace(all);
    ["a/x", "b/x"].iter().for_each(|key| list.keep_cached(pod(key, 3).key()));
    store.delete(other, pod("b/x", 6)).unwrap();
    store.upsert(other, pod("b/y", 7)).unwrap();
    store.upsert(other, pod("b/z", 20)).unwrap();
    assert_eq!(
        shorts(store.commit(list, version(8)).unwrap()),
        ["l-b/y@7"],
        "what is newer than the list stays"
    );
    store.validate();
    // The slots are used again as soon as no list counts on them.
    for round in 0..100 {
        store.upsert(other, pod("b/x", 30 + 2 * round)).unwrap();
        store.delete(other, pod("b/x", 31 + 2 * round)).unwrap();
    }
    store.validate();
    assert_eq!(names(&store.cache().snapshot()), ["a/x@3", "b/z@20"]);
}

#[test]
fn l10_a_list_of_another_store_is_refused() {
    let (store, source) = synced([pod("a/x", 3)], 5);
    let (mut other, _) = synced([pod("a/x", 3)], 5);
    let list = store.begin_replace(source);
    assert!(other.commit(list, version(9)).unwrap_err().is_unknown_source());
    assert_eq!(other.cache().len(), 1);
}

#[test]
fn c5_a_list_without_a_version_is_taken() {
    let mut store = Store::new();
    let source = store.add_source(Scope::All);
    let list = staged(store.begin_replace(source), [pod("a/x", 3)]);
    assert_eq!(store.commit(list, ResourceVersion::UNSET).unwrap().len(), 1);
    assert!(store.is_synced() && store.resource_version().is_unset());
    let old = store.cache().get_str("a/x").unwrap();
    let list = staged(store.begin_replace(source), [Arc::clone(&old)]);
    assert!(store.commit(list, ResourceVersion::UNSET).unwrap().is_empty());
}

#[test]
fn l12_what_a_restored_list_has_stays_though_an_older_event_says_that_it_is_gone() {
    let (mut store, source) = synced([pod("a/x", 9)], 9);
    let mut list = store.begin_restored_replace(source);
    list.stage(pod("a/x", 9));
    list.delete_key(&"a/x".parse().unwrap(), &version(3));
    assert_eq!(shorts(store.commit(list, version(9)).unwrap()), [""; 0]);
    assert_eq!(names(&store.cache().snapshot()), ["a/x@9"]);
}
