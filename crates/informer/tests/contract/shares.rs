//! Q9: informers of a share, on a server that knows none.

use std::collections::BTreeSet;

use informer::share::{HashRange, Ranges, Share, ShareBy, hash, server_filters};
use informer::{Change, DeleteReason, Existence, Informer, Object, Origin};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::server::Server;
use super::support::{
    Recorder, builder, cached, content, next, nodes, pods, settle, soon, started, until, until_synced,
};

/// The share with the hashes of these values only.
fn only(by: ShareBy, values: &[&str]) -> Share {
    let range = |value: &&str| HashRange::new(hash(value), u128::from(hash(value)) + 1).unwrap();
    Share::new(by, values.iter().map(range).collect::<Ranges>())
}

fn half(by: ShareBy) -> Share {
    Share::new(by, HashRange::new(0, 1 << 63).unwrap())
}

/// Three shares, each with a third of the hashes that the server's pods have. (The hashes of short texts that differ only in
/// their ends are close to each other.)
async fn thirds(server: &Server, by: ShareBy) -> [Share; 3] {
    let all = started(&builder(server).build().unwrap()).await;
    let share = Share::new(by, Ranges::all());
    let hashes =
        all.snapshot().objects().filter_map(|object| share.hash_of(object).unwrap()).collect::<BTreeSet<_>>();
    let at = |third: usize| *hashes.iter().nth(hashes.len() * third / 3).unwrap();
    let bounds = [(0, at(1).into()), (at(1), at(2).into()), (at(2), 1 << 64)];
    bounds.map(|(start, end)| Share::new(by, HashRange::new(start, end).unwrap()))
}

fn controlled_by(uid: &str) -> Value {
    json!({ "metadata": { "ownerReferences": [{ "kind": "A", "name": "a", "uid": uid, "controller": true }] } })
}

#[tokio::test(start_paused = true)]
async fn q9_f2_informers_of_all_shares_together_have_each_object_once() {
    let server = Server::new();
    for number in 0..40 {
        server.put("pods", &format!("shop-{}/p-{number}", number % 7), json!({}));
    }
    for by in [ShareBy::Uid, ShareBy::Namespace] {
        let shares = thirds(&server, by).await;
        let mut informers: Vec<Informer<Object>> = Vec::new();
        for share in &shares {
            informers.push(started(&builder(&server).build().unwrap().with_share(share.clone())).await);
        }
        server.put("pods", "shop-1/new", json!({}));
        server.put("pods", "shop-2/p-2", json!({ "spec": by.to_string() }));
        server.delete("pods", "shop-1/p-1");
        server.put("pods", "shop-1/p-1", json!({}));
        server.bookmark("pods");
        let all = || {
            let mut all: Vec<_> = informers.iter().flat_map(cached).collect();
            all.sort();
            all
        };
        until("they have everything", || all() == content(&server)).await;
        assert!(informers.iter().all(|informer| informer.len() < content(&server).len()));
        for (informer, share) in informers.iter().zip(&shares) {
            assert!(informer.snapshot().objects().all(|object| share.has(object)));
            assert!(informer.metrics().outside_share > 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn q9_f1_a_share_belongs_to_the_selection_and_replaces_the_former_one() {
    let server = Server::new();
    let factory = builder(&server).build().unwrap().with_share(half(ShareBy::Uid));
    let text = "all namespaces, share by uid 0x0000000000000000-0x8000000000000000";
    assert_eq!(factory.selection().to_string(), text);
    assert!(!factory.selection().is_everything());
    let pods_of_share: Informer<Object> = factory.informer_of(pods());
    let same: Informer<Object> = factory.with_share(half(ShareBy::Uid)).informer_of(pods());
    let owned: Informer<Object> =
        factory.with_share(half(ShareBy::Uid).of(ShareBy::ControllerUid)).informer_of(pods());
    let all: Informer<Object> = factory.with_share(None).informer_of(pods());
    factory.start();
    factory.wait_for_sync(super::support::LONG).await.unwrap();
    assert_eq!((server.count("LIST"), all.selection().is_everything()), (3, true));
    assert_eq!(pods_of_share.selection(), same.selection());
    assert_eq!(owned.selection().share().unwrap().by(), ShareBy::ControllerUid);
}

#[tokio::test(start_paused = true)]
async fn q9_the_server_is_asked_for_a_share_only_if_the_program_says_so() {
    let server = Server::new();
    let _all = started(&builder(&server).build().unwrap().with_share(half(ShareBy::Uid))).await;
    assert!(!server.log().concat().contains("shardSelector"));
    let asking = || builder(&server).ask_for_share(true);
    let _owned = started(&asking().build().unwrap().with_share(half(ShareBy::ControllerUid))).await;
    assert!(!server.log().concat().contains("shardSelector"), "no server selects by owners");
    let before = server.log().len();
    let _asked = started(&asking().build().unwrap().with_share(half(ShareBy::Namespace))).await;
    let selector =
        "shardSelector=shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')";
    let asked: Vec<_> =
        server.log().split_off(before).into_iter().filter(|line| !line.contains("/version")).collect();
    assert!(asked.len() >= 2 && asked.iter().all(|line| line.contains(selector)), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn q9_h14_an_object_that_leaves_the_share_of_its_owner_may_exist() {
    let server = Server::new();
    server.put("pods", "shop/a", controlled_by("mine"));
    server.put("pods", "shop/b", json!({}));
    let factory = builder(&server).build().unwrap().with_share(only(ShareBy::ControllerUid, &["mine"]));
    let informer = started(&factory).await;
    let mut changes = informer.changes().unwrap();
    assert_eq!(until_synced(&mut changes).await.len(), 2);
    // Adopted, orphaned, given to another owner, deleted.
    server.put("pods", "shop/b", controlled_by("mine"));
    assert!(matches!(next(&mut changes).await, Change::Added { new, .. } if new.key().as_str() == "shop/b"));
    server.put("pods", "shop/a", json!({}));
    let Change::Deleted(left) = next(&mut changes).await else { panic!("a deletion is due") };
    assert_eq!((left.reason(), left.origin()), (DeleteReason::DeletedOrDeselected, Origin::Watch));
    assert!(matches!(soon(left.confirm()).await.unwrap(), Existence::Exists { .. }));
    server.put("pods", "shop/a", controlled_by("theirs"));
    server.delete("pods", "shop/a");
    server.delete("pods", "shop/b");
    let Change::Deleted(deleted) = next(&mut changes).await else { panic!("a deletion is due") };
    assert_eq!((deleted.key().as_str(), deleted.is_certain()), ("shop/b", false));
    assert_eq!(soon(deleted.confirm()).await.unwrap(), Existence::Gone);
}

#[tokio::test(start_paused = true)]
async fn q9_h14_an_object_never_leaves_a_share_by_what_never_changes() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    let share = only(ShareBy::Namespace, &["shop"]);
    let informer = started(&builder(&server).build().unwrap().with_share(share)).await;
    let mut changes = informer.changes().unwrap();
    until_synced(&mut changes).await;
    server.delete("pods", "shop/a");
    let Change::Deleted(deleted) = next(&mut changes).await else { panic!("a deletion is due") };
    assert_eq!(deleted.reason(), DeleteReason::Observed);
}

/// The tasks of a controller that wait for their own writes must not wait for an event of their share.
#[tokio::test(start_paused = true)]
async fn q9_c5_the_version_of_the_cache_goes_on_with_other_shares() {
    let server = Server::new();
    let share = only(ShareBy::Namespace, &["shop"]);
    let informer = started(&builder(&server).build().unwrap().with_share(share)).await;
    let version = server.put("pods", "front/a", json!({})).to_string();
    soon(informer.at_least(&version.as_str().into(), super::support::LONG)).await.unwrap();
    assert_eq!((informer.len(), informer.resource_version().to_string()), (0, version));
}

#[tokio::test(start_paused = true)]
async fn q9_p1_a_cache_of_another_share_is_not_used() {
    let server = Server::new();
    for number in 0..10 {
        server.put("pods", &format!("shop-{number}/p"), json!({}));
    }
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("pods");
    let [lower, all] = [half(ShareBy::Namespace), Share::new(ShareBy::Namespace, Ranges::all())];
    let named = || builder(&server).server_name("test");
    let factory = named().build().unwrap().with_share(lower.clone());
    let informer = started(&factory).await;
    let in_lower = informer.len();
    informer.save(&path).await.unwrap();
    factory.shutdown().await;
    for (share, is_same) in [
        (Some(lower.clone()), true),
        (Some(lower.of(ShareBy::Uid)), false),
        (Some(all), false),
        (None, false),
    ] {
        let informer: Informer<Object> = named().build().unwrap().with_share(share).informer_of(pods());
        match informer.load(&path).await {
            Ok(loaded) => assert!(is_same && loaded.objects == in_lower),
            Err(error) => assert!(!is_same, "{error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn q9_m1_what_is_left_out_is_counted() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    server.put("pods", "front/b", json!({}));
    let share = only(ShareBy::Namespace, &["shop"]);
    let factory = builder(&server).build().unwrap().with_share(share);
    let informer = started(&factory).await;
    server.put("pods", "front/b", json!({ "spec": 1 }));
    server.put("pods", "shop/a", json!({ "spec": 1 }));
    until("the change is there", || cached(&informer) == ["shop/a@104"]).await;
    let now = informer.metrics();
    assert_eq!((now.outside_share, now.list_items, now.objects), (2, 2, 1));
    assert!(now.labels.contains(&("selector".to_owned(), "yes".to_owned())));
    let text = factory.metrics().to_text(informer::metrics::Format::OpenMetrics);
    assert!(
        text.lines().any(|line| line.starts_with("informer_outside_share_total{") && line.ends_with(" 2")),
        "{text}"
    );
}

/// A resource without namespaces is, as a whole, in one share by namespace.
#[tokio::test(start_paused = true)]
async fn q9_f2_cluster_wide_objects_hash_an_empty_namespace() {
    let server = Server::new();
    server.put("nodes", "one", json!({}));
    for (value, count) in [("", 1), ("shop", 0)] {
        let factory = builder(&server).build().unwrap().with_share(only(ShareBy::Namespace, &[value]));
        let informer: Informer<Object> = factory.informer_of(nodes());
        factory.start();
        informer.wait_for_sync(super::support::LONG).await.unwrap();
        assert_eq!(informer.len(), count, "{value}");
    }
}

#[tokio::test(start_paused = true)]
async fn q9_h1_handlers_hear_only_of_their_share() {
    let server = Server::new();
    server.put("pods", "front/x", json!({}));
    server.put("pods", "shop/a", json!({}));
    let share = only(ShareBy::Namespace, &["shop"]);
    let informer = started(&builder(&server).build().unwrap().with_share(share)).await;
    let (recorder, log) = Recorder::new();
    let _registration = informer.subscribe().handler(recorder).unwrap();
    log.until("synced").await;
    server.put("pods", "front/x", json!({ "spec": 1 }));
    server.delete("pods", "front/x");
    // All watches break off, and a list finds out.
    server.expire("pods");
    server.put("pods", "shop/b", json!({}));
    log.until("add shop/b@105").await;
    settle().await;
    assert_eq!(log.lines(), ["add shop/a@102 initial", "synced", "add shop/b@105"]);
}

#[tokio::test(start_paused = true)]
async fn q9_a_server_without_shares_says_so() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    assert!(!server_filters(&server, &pods(), None).await.unwrap());
    assert!(!server_filters(&server, &pods(), Some("shop")).await.unwrap());
    server.deny("pods", 403, "Forbidden");
    let refused = server_filters(&server, &pods(), None).await.unwrap_err();
    assert!(refused.to_string().starts_with("the server refused to say"), "{refused}");
}
