//! C7: listers; and what a type makes of objects that do not fit it.

use informer::{Change, DecodeError, Informer, Item, Object, ObjectKey, Report, ResourceType};
use k8s_openapi::api::core::v1::Node;
use serde_json::json;

use super::server::Server;
use super::support::{
    LONG, caught_up, factory, labelled, live, next, nodes, pods, started, until, until_synced,
};

#[tokio::test(start_paused = true)]
async fn c7_listers_select_by_namespace_and_labels() {
    let (server, _factory, informer) = live(&["shop/a", "front/b"]).await;
    server.put("pods", "shop/web", labelled("app", "web"));
    server.put("pods", "shop/db", labelled("app", "db"));
    server.put("pods", "front/web", labelled("app", "web"));
    caught_up(&server, &informer).await;
    let lister = informer.lister();
    let keys = |objects: Vec<Item<Object>>| {
        let mut keys: Vec<_> = objects.iter().map(|object| object.key().to_string()).collect();
        keys.sort();
        keys.join(" ")
    };
    assert_eq!(lister.list().len(), 5);
    assert_eq!(keys(lister.namespace("shop").list()), "shop/a shop/db shop/web");
    assert_eq!(keys(lister.labels("app=web").unwrap().list()), "front/web shop/web");
    // Each call narrows.
    let in_shop = lister.namespace("shop").labels("app in (web, db)").unwrap().labels("app!=db").unwrap();
    assert_eq!(keys(in_shop.list()), "shop/web");
    assert_eq!(keys(lister.namespace("nowhere").list()), "");
    assert_eq!(keys(lister.filter(|object| object.key().name() == "b")), "front/b");
    assert!(lister.labels("app in (").is_err());
}

#[tokio::test(start_paused = true)]
async fn c7_what_is_not_there_is_none() {
    let (_server, _factory, informer) = live(&["shop/a"]).await;
    let lister = informer.lister();
    assert!(lister.get("shop/a").unwrap().is_some());
    assert!(lister.namespace("shop").get("a").unwrap().is_some());
    let key: ObjectKey = "shop/a".parse().unwrap();
    assert!(lister.get(&key).unwrap().is_some() && informer.snapshot().get(&key).unwrap().is_some());
    for missing in [
        lister.get("shop/b"),
        lister.namespace("front").get("a"),
        lister.labels("app=web").unwrap().get("shop/a"),
        // No object can have such a key.
        lister.get("a/b/c"),
        lister.namespace("shop").get("a/b"),
        informer.snapshot().get("shop/b"),
    ] {
        assert!(missing.unwrap().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn c7_pages_of_a_snapshot_do_not_shift() {
    let server = Server::new();
    server.put_many("pods", (0..25).map(|number| format!("shop/{number:02}")));
    let factory = factory(&server);
    let informer = started(&factory).await;
    let snapshot = informer.lister().snapshot();
    let (mut after, mut pages) = (None, Vec::new());
    loop {
        let page = snapshot.page(after.as_ref(), 10);
        let Some(last) = page.last() else { break };
        after = Some(last.key().clone());
        pages.push(page.iter().map(|object| object.key().name().to_owned()).collect::<Vec<_>>());
        // The collection changes meanwhile.
        server.delete("pods", &format!("shop/{:02}", pages.len()));
        server.put("pods", &format!("shop/{:02}-new", pages.len() * 10), json!({}));
        caught_up(&server, &informer).await;
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 5]);
    assert_eq!(pages.concat(), (0..25).map(|number| format!("{number:02}")).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn c7_objects_without_a_namespace() {
    let server = Server::new();
    server.put("nodes", "node-1", json!({}));
    let factory = factory(&server);
    let informer = factory.informer_of::<Object>(nodes());
    factory.start();
    informer.wait_for_sync(LONG).await.unwrap();
    assert!(informer.lister().get("node-1").unwrap().is_some());
    assert_eq!(ResourceType::of::<Node>(), nodes());
    // Namespaces mean nothing to them: it is the same informer.
    let narrowed = factory.in_namespace("shop").informer_of::<Object>(nodes());
    assert!(narrowed.is_synced() && !narrowed.add_namespace("front"));
    assert_eq!(server.count("LIST"), 1);
}

#[derive(serde::Deserialize)]
struct Numbered {
    number: u64,
}

#[tokio::test(start_paused = true)]
async fn w8_a_version_that_does_not_fit_the_type_is_told_and_left_out() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({ "number": 1 }));
    server.put("pods", "shop/never", json!({ "number": "treasure" }));
    let factory = factory(&server);
    let _raw = started(&factory).await;
    let informer = factory.informer_of::<Numbered>(pods());
    let mut changes = informer.changes().unwrap();
    let first = until_synced(&mut changes).await;
    assert_eq!(first.iter().filter(|change| matches!(change, Change::Undecodable(_))).count(), 1);
    // The story goes on from the last version that could be read.
    server.put("pods", "shop/a", json!({ "number": [] }));
    assert!(matches!(next(&mut changes).await, Change::Undecodable(_)));
    server.put("pods", "shop/a", json!({ "number": 3 }));
    let Change::Updated { old, new, .. } = next(&mut changes).await else { panic!("no update") };
    assert_eq!((old.get().unwrap().number, new.number), (1, 3));
    // A deletion is told with the last state that can be read.
    server.put("pods", "shop/a", json!({ "number": null }));
    assert!(matches!(next(&mut changes).await, Change::Undecodable(_)));
    server.delete("pods", "shop/a");
    let Change::Deleted(deleted) = next(&mut changes).await else { panic!("no deletion") };
    assert_eq!(deleted.last().number, 3);
    // And not at all of what was never told.
    server.delete("pods", "shop/never");
    server.put("pods", "shop/b", json!({ "number": 4 }));
    let Change::Added { new: object, initial, .. } = next(&mut changes).await else { panic!("no addition") };
    assert_eq!((object.number, initial), (4, false));
}

/// The keys of what a typed list has, sorted.
fn keys_of(items: impl IntoIterator<Item = Item<Numbered>>) -> Vec<String> {
    let mut keys: Vec<_> = items.into_iter().map(|item| item.key().to_string()).collect();
    keys.sort();
    keys
}

#[tokio::test(start_paused = true)]
async fn c11_an_undecodable_object_fails_no_typed_list_and_is_reported_once() {
    let server = Server::new();
    for (key, number) in [("shop/a", json!(1)), ("shop/bad", json!("treasure")), ("shop/c", json!(3))] {
        server.put("pods", key, json!({ "number": number }));
    }
    let factory = factory(&server);
    let raw = started(&factory).await;
    let informer: Informer<Numbered> = factory.informer_of(pods());
    let by_name = raw.add_named_index("name", |object| [object.key().name().to_owned()]).unwrap();
    let by_name_of_numbers = informer.index_named("name").unwrap();
    let mut reports = informer.reports();
    let unreadable = informer.metrics().unreadable;

    let lister = informer.lister();
    let snapshot = informer.snapshot();
    for _ in 0..3 {
        assert_eq!(keys_of(lister.list()), ["shop/a", "shop/c"]);
        assert_eq!(keys_of(lister.filter(|item| item.number > 1)), ["shop/c"]);
        assert_eq!(keys_of(snapshot.iter()), ["shop/a", "shop/c"]);
        assert_eq!(keys_of(snapshot.page(None, 2)), ["shop/a", "shop/c"]);
        assert_eq!(keys_of(by_name_of_numbers.get("bad")), [""; 0]);
        assert_eq!(keys_of(by_name_of_numbers.lookup(&snapshot, "bad")), [""; 0]);
    }
    // Reported once per version, and never with its content.
    let Some(Report::Undecodable { key, resource_version, reason }) = reports.try_recv() else {
        panic!("no report")
    };
    assert_eq!((key.as_str(), resource_version.to_string().as_str()), ("shop/bad", "102"));
    assert!(!reason.contains("treasure"), "content in a report: {reason}");
    assert_eq!(reports.try_recv(), None);
    assert_eq!(informer.metrics().unreadable, unreadable + 1);

    // The strict forms say so; a look at the object itself does not take it for a missing one.
    let is_bad = |error: &DecodeError| error.key().as_str() == "shop/bad";
    assert!(lister.try_list().is_err_and(|error| is_bad(&error)));
    assert!(by_name_of_numbers.try_get("bad").is_err_and(|error| is_bad(&error)));
    assert_eq!(snapshot.iter().strict().filter(Result::is_err).count(), 1);
    assert!(lister.get("shop/bad").is_err_and(|error| is_bad(&error)));
    assert!(snapshot.get("shop/bad").is_err_and(|error| is_bad(&error)));
    assert_eq!((raw.lister().list().len(), by_name.get("bad").len()), (3, 1));

    // Another version is another report.
    server.put("pods", "shop/bad", json!({ "number": "treasure" }));
    caught_up(&server, &raw).await;
    assert_eq!(lister.list().len(), 2);
    assert!(matches!(reports.try_recv(), Some(Report::Undecodable { .. })));
    server.put("pods", "shop/bad", json!({ "number": 2 }));
    caught_up(&server, &raw).await;
    assert_eq!((lister.try_list().unwrap().len(), reports.try_recv()), (3, None));
}

/// Five fields and no metadata: who it is stands beside it.
#[tokio::test(start_paused = true)]
async fn c6_h1_a_type_without_metadata_has_an_identity_everywhere() {
    let server = Server::new();
    let fields = json!({ "number": 1, "metadata": { "labels": { "app": "web" } } });
    server.put("pods", "shop/a", fields);
    let factory = factory(&server);
    let raw = started(&factory).await;
    let informer: Informer<Numbered> = factory.informer_of(pods());
    let by_number = informer.add_index(|pod| [pod.number]);
    let only_shop = |pod: &Item<Numbered>| pod.key().namespace() == Some("shop");
    let mut changes = informer.subscribe().filter(only_shop).changes().unwrap();
    let first = until_synced(&mut changes).await;

    let expected = raw.lister().get("shop/a").unwrap().unwrap();
    let same = |item: &Item<Numbered>| {
        let labels = (item.labels().value("app"), item.number);
        let version = (item.key(), item.uid(), item.resource_version());
        assert_eq!(version, (expected.key(), expected.uid(), expected.resource_version()));
        assert_eq!((labels, format!("{item:?}")), ((Some("web"), 1), "shop/a@101".to_owned()));
    };
    same(first[0].new().unwrap());
    same(&informer.lister().get("shop/a").unwrap().unwrap());
    same(&informer.snapshot().page(None, 1)[0]);
    same(&by_number.get(&1)[0]);
    assert_eq!(by_number.clone().get(&1).len(), 1);

    server.put("pods", "shop/a", json!({ "number": 2 }));
    let change = next(&mut changes).await;
    let (old, new) = (change.old().unwrap(), change.new().unwrap());
    assert_eq!((change.key(), old.uid(), new.number), (Some(expected.key()), expected.uid(), 2));
    same(&old.get().unwrap());
    assert_eq!(format!("{change:?}"), "Updated { old: shop/a@101, new: shop/a@102, origin: Watch }");
    server.delete("pods", "shop/a");
    let change = next(&mut changes).await;
    assert!(change.new().is_none() && change.old().is_some_and(|old| old.uid() == expected.uid()));
    let reference = informer.object_ref(&expected_as(&change));
    assert_eq!((reference.uid(), reference.key()), (Some(expected.uid()), expected.key()));
}

/// The last state that a deletion has.
fn expected_as(change: &Change<Numbered>) -> Item<Numbered> {
    let Change::Deleted(deleted) = change else { panic!("{change:?} is no deletion") };
    deleted.last().clone()
}

/// The last state of a deletion that nobody could read before: the one that was told counts.
#[tokio::test(start_paused = true)]
async fn w8_d1_a_deletion_whose_last_state_does_not_fit_is_told_with_the_one_before() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({ "number": 1 }));
    let factory = factory(&server);
    let raw = started(&factory).await;
    let informer = factory.informer_of::<Numbered>(pods());
    let mut changes = informer.changes().unwrap();
    until_synced(&mut changes).await;
    server.put("pods", "shop/a", json!({ "number": [] }));
    server.delete("pods", "shop/a");
    until("it is gone", || raw.is_empty()).await;
    let Change::Deleted(deleted) = next(&mut changes).await else { panic!("no deletion") };
    assert_eq!(deleted.last().number, 1);
}

/// A user's type with a bug.
struct Fragile(u64);

impl<'de> serde::Deserialize<'de> for Fragile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Numbered { number } = Numbered::deserialize(deserializer)?;
        assert_ne!(number, 13, "as the test wants it");
        Ok(Self(number))
    }
}

/// A panic in `Deserialize` is an error of that version: no update and no deletion comes without an addition before it.
#[tokio::test(start_paused = true)]
async fn h1_w8_a_version_whose_deserialize_panics_is_undecodable() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({ "number": 1 }));
    server.put("pods", "shop/never", json!({ "number": 13 }));
    let factory = factory(&server);
    let _raw = started(&factory).await;
    let informer = factory.informer_of::<Fragile>(pods());
    let mut changes = informer.changes().unwrap();
    let first = until_synced(&mut changes).await;
    let undecodable = |change: &Change<Fragile>| matches!(change, Change::Undecodable(_));
    assert_eq!((first.len(), first.iter().filter(|change| undecodable(change)).count()), (3, 1));
    assert!(informer.lister().get("shop/never").is_err_and(|error| error.to_string().contains("panicked")));

    server.put("pods", "shop/a", json!({ "number": 13 }));
    server.put("pods", "shop/never", json!({ "number": 13 }));
    for key in ["shop/a", "shop/never"] {
        let Change::Undecodable(error) = next(&mut changes).await else { panic!("{key} was decoded") };
        assert_eq!(error.key().as_str(), key);
    }
    server.put("pods", "shop/a", json!({ "number": 3 }));
    let Change::Updated { old, new, .. } = next(&mut changes).await else { panic!("no update") };
    assert_eq!((old.get().unwrap().0, new.0), (1, 3));
    server.delete("pods", "shop/never");
    server.delete("pods", "shop/a");
    let Change::Deleted(deleted) = next(&mut changes).await else { panic!("no deletion") };
    assert_eq!((deleted.key().as_str(), deleted.last().0), ("shop/a", 3));
}
