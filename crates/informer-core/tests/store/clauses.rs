//! Events, bookmarks, snapshots and selectors.

use std::sync::Arc;

use informer_core::{Origin, ResourceVersion, Scope, Selector, Store};

use fuzzing::store::pods::{Pod, names, pod, relist, short, shorts, staged, synced, version};

#[test]
fn w11_an_event_that_is_not_newer_is_dropped() {
    let (mut store, source) = synced([pod("a/x", 5)], 6);
    for at in [4, 5] {
        assert!(store.upsert(source, pod("a/x", at)).is_none());
    }
    assert!(store.delete(source, pod("a/x", 4)).is_none(), "a deletion of a former incarnation");
    assert_eq!(names(&store.cache().snapshot()), ["a/x@5"]);
    assert_eq!(short(&store.upsert(source, pod("a/x", 7)).unwrap()), "w~a/x@5>7");
    assert_eq!(short(&store.delete(source, pod("a/x", 9)).unwrap()), "w-a/x@7>9");
    assert!(store.delete(source, pod("a/x", 10)).is_none(), "there is nothing left to delete");
    store.validate();
}

#[test]
fn w11_versions_without_an_order_are_taken_as_they_come() {
    let of = |version, uid| Pod { key: "a/x", version, uid, ..Pod::default() }.object();
    let (mut store, source) = synced([of("b", "1")], 6);
    assert!(store.upsert(source, of("b", "1")).is_none());
    assert_eq!(short(&store.upsert(source, of("a", "2")).unwrap()), "w~a/x@b>a");
    assert_eq!(short(&store.upsert(source, of("7", "3")).unwrap()), "w~a/x@a>7");
    assert_eq!(short(&store.delete(source, of("b", "3")).unwrap()), "w-a/x@7>b");
}

#[test]
fn h9_without_versions_the_content_decides() {
    let of = |uid| Pod { key: "a/x", uid, ..Pod::default() }.object();
    let (mut store, source) = synced([of("1")], 6);
    assert!(relist(&mut store, source, [of("1")], 7).is_empty());
    assert!(store.upsert(source, of("1")).is_none());
    assert!(store.upsert(source, of("2")).is_some());
    assert!(!store.is_unchanged("a/x", &ResourceVersion::UNSET));
}

#[test]
fn c4_a_snapshot_never_changes() {
    let labelled = |key: &str, version: &str| {
        Pod { key, version, labels: &[("app", "shop")], ..Pod::default() }.object()
    };
    let (mut store, source) = synced((0..500).map(|at| labelled(&format!("a/x{at}"), "5")), 6);
    let cache = store.cache();
    cache.index_labels();
    let selector: Selector = "app=shop".parse().unwrap();
    let before = cache.snapshot();
    let (content, version_before) = (names(&before), before.resource_version().clone());
    for at in 0..500 {
        match at % 3 {
            0 => _ = store.upsert(source, labelled(&format!("a/x{at}"), "7")).unwrap(),
            1 => _ = store.delete(source, labelled(&format!("a/x{at}"), "8")).unwrap(),
            _ => _ = store.upsert(source, labelled(&format!("b/x{at}"), "9")).unwrap(),
        }
    }
    relist(&mut store, source, [pod("c/y", 10)], 11);
    drop(store);
    assert_eq!(names(&before), content);
    assert_eq!(names(before.select(&selector)), content);
    assert_eq!(names(before.namespace("a")), content);
    assert_eq!((before.resource_version(), before.page(None, 1_000).len()), (&version_before, 500));
    assert_eq!(names(&cache.snapshot()), ["c/y@10"]);
}

#[test]
fn c5_the_version_follows_events_and_bookmarks_and_never_goes_back() {
    let mut store = Store::new();
    let source = store.add_source(Scope::All);
    let cache = store.cache();
    store.upsert(source, pod("a/x", 3));
    assert!(cache.resource_version().is_unset() && !cache.is_synced(), "nothing is listed yet");
    relist(&mut store, source, [pod("a/x", 3)], 5);
    assert_eq!(cache.resource_version(), version(5));
    store.upsert(source, pod("a/y", 8));
    assert_eq!(cache.resource_version(), version(8));
    store.bookmark(source, &version(7));
    assert_eq!(cache.resource_version(), version(8));
    store.bookmark(source, &version(12));
    store.upsert(source, pod("a/x", 11));
    assert_eq!(cache.resource_version(), version(12));
    store.delete(source, pod("a/x", 13));
    assert_eq!((cache.resource_version(), cache.snapshot().resource_version()), (version(13), &version(13)));
    assert_eq!(store.source_version(source), version(13));
}

#[test]
fn c5_w9_events_before_the_first_version_come_in_no_order() {
    let mut store = Store::new();
    let source = store.add_source(Scope::All);
    let list = store.begin_replace(source);
    store.commit(list, ResourceVersion::UNSET).unwrap();
    store.upsert(source, pod("a/x", 9));
    store.upsert(source, pod("a/y", 4));
    assert!(store.resource_version().is_unset());
    store.bookmark(source, &version(9));
    assert_eq!(store.resource_version(), version(9));
}

#[test]
fn c5_several_sources_are_as_far_as_the_slowest() {
    let mut store = Store::new();
    let [a, b] = ["a", "b"].map(|namespace| store.add_source(Scope::Namespace(namespace.into())));
    let cache = store.cache();
    relist(&mut store, a, [pod("a/x", 3)], 10);
    assert!(cache.resource_version().is_unset() && !cache.is_synced());
    assert!(store.is_source_synced(a) && !store.is_source_synced(b));
    relist(&mut store, b, [], 7);
    assert_eq!((cache.resource_version(), cache.is_synced()), (version(7), true));
    store.bookmark(b, &version(20));
    assert_eq!(cache.resource_version(), version(10));
    let late = store.add_source(Scope::Namespace("c".into()));
    assert_eq!((cache.resource_version(), cache.is_synced()), (version(10), false));
    // A source that was added later may never sync: it delays no other.
    store.bookmark(a, &version(20));
    assert_eq!((cache.resource_version(), cache.is_synced()), (version(20), false));
    relist(&mut store, late, [], 25);
    assert_eq!((cache.resource_version(), cache.is_synced()), (version(20), true));
    store.bookmark(a, &version(30));
    store.bookmark(b, &version(30));
    assert_eq!(cache.resource_version(), version(25));
    store.remove_source(late);
    assert_eq!(cache.resource_version(), version(30));
}

#[test]
fn f7_namespaces_come_and_go() {
    let mut store = Store::new();
    let [a, b] = ["a", "b"].map(|namespace| store.add_source(Scope::Namespace(namespace.into())));
    relist(&mut store, a, [pod("a/x", 3), pod("a/y", 4)], 10);
    relist(&mut store, b, [pod("b/x", 5), pod("a/z", 6)], 10);
    assert_eq!(
        names(&store.cache().snapshot()),
        ["a/x@3", "a/y@4", "b/x@5"],
        "each has its own namespace only"
    );
    assert!(store.upsert(b, pod("a/z", 11)).is_none());
    assert!(relist(&mut store, b, [pod("b/x", 5)], 11).is_empty(), "a list sweeps its own namespace only");

    let all = store.add_source(Scope::All);
    relist(&mut store, all, [pod("a/x", 3), pod("a/y", 4), pod("b/x", 5), pod("c/x", 6)], 12);
    assert!(store.remove_source(b).is_empty(), "another source covers what it covered");
    let mut gone: Vec<_> = store.remove_source(all).collect();
    gone.sort_by_key(|change| change.key().clone());
    assert_eq!(shorts(&gone), ["s-b/x@5", "s-c/x@6"]);
    assert!(gone.iter().all(|change| change.origin == Origin::Scope));
    assert!(store.upsert(all, pod("c/x", 20)).is_none(), "a late event of a source that is gone");
    let list = staged(store.begin_replace(a), [pod("a/new", 30)]);
    assert_eq!(store.remove_source(a).len(), 2);
    assert!(store.commit(list, version(31)).unwrap_err().is_unknown_source());
    assert!(store.cache().is_empty());
    store.validate();
}

#[test]
fn c7_selectors_answer_alike_with_and_without_their_index() {
    let of = |(at, labels): (usize, &[(&str, &str)])| {
        Pod { key: &format!("n{}/x{at}", at % 2), version: "5", labels, ..Pod::default() }.object()
    };
    let sets: [&[(&str, &str)]; 5] = [
        &[],
        &[("app", "a")],
        &[("app", "b"), ("tier", "db")],
        &[("app", "a"), ("tier", "")],
        &[("size", "12")],
    ];
    let (mut store, source) = synced(sets.into_iter().cycle().take(500).enumerate().map(of), 6);
    let cache = store.cache();
    let texts = [
        "app",
        "!app",
        "app=a",
        "app!=a,tier",
        "app in (a,b),!tier",
        "tier=",
        "size>3",
        "size<3",
        "app notin (a)",
        "x=y",
    ];
    let ask = || {
        let snapshot = cache.snapshot();
        texts.map(|text| {
            let selector: Selector = text.parse().unwrap();
            let hits = names(snapshot.select(&selector));
            let matching = snapshot.iter().filter(|object| selector.matches(object.labels()));
            assert_eq!(hits, names(matching), "{text}");
            let in_namespace = names(snapshot.select_in(Some("n1"), &selector));
            assert_eq!(
                in_namespace,
                names(snapshot.namespace("n1").filter(|object| selector.matches(object.labels())))
            );
            hits.len()
        })
    };
    // The first query scans, the second one builds the index.
    let before = ask();
    assert_eq!(before, ask());
    assert_eq!(before, [300, 200, 200, 100, 100, 100, 100, 0, 300, 0]);
    for at in 0..100 {
        let changed = Pod {
            key: &format!("n{}/x{}", at * 5 % 2, at * 5),
            version: "7",
            labels: &[("app", "a")],
            ..Pod::default()
        };
        store.upsert(source, changed.object()).unwrap();
    }
    store.validate();
    assert_eq!(ask()[..3], [400, 100, 300]);
}

#[test]
fn c7_pages_are_in_the_order_of_the_keys() {
    let (store, _) = synced(["b/x", "node-1", "a-b/x", "a/z", "a/b"].map(|key| pod(key, 5)), 6);
    let snapshot = store.cache().snapshot();
    let page = |after: Option<&str>, limit| {
        let after = after.map(|after| after.parse().unwrap());
        snapshot.page(after.as_ref(), limit).map(|object| object.key().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 2), ["node-1", "a/b"]);
    assert_eq!(page(Some("a/b"), 2), ["a/z", "a-b/x"]);
    assert_eq!(page(Some("a/c"), usize::MAX), ["a/z", "a-b/x", "b/x"], "the key need not be there");
    assert!(page(Some("b/x"), 2).is_empty());
    assert!(snapshot.get_str("absent/x").is_none() && snapshot.namespace("absent").next().is_none());
}

#[test]
fn c10_bytes_held_are_counted() {
    let (mut store, source) = synced([pod("a/x", 5), pod("a/y", 6)], 6);
    let cache = store.cache();
    let expected = || cache.snapshot().iter().map(|object| object.held_bytes()).sum::<usize>();
    assert_eq!(cache.snapshot().held_bytes(), expected());
    let before = cache.held_bytes();
    assert!(before > expected(), "tables take something too");
    let large = Pod { key: "a/x", version: "9", tags: &["large"; 100], ..Pod::default() }.object();
    store.upsert(source, Arc::clone(&large));
    assert!(cache.snapshot().held_bytes() == expected() && cache.held_bytes() > before + 600);
    relist(&mut store, source, [], 10);
    assert_eq!(cache.snapshot().held_bytes(), 0);
}
