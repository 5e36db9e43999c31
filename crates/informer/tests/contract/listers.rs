//! C7: listers; and what a type makes of objects that do not fit it.

use informer::{Change, Object, ResourceType};
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
    let keys = |objects: Vec<std::sync::Arc<Object>>| {
        let mut keys: Vec<_> = objects.iter().map(|object| object.key().to_string()).collect();
        keys.sort();
        keys.join(" ")
    };
    assert_eq!(lister.list().unwrap().len(), 5);
    assert_eq!(keys(lister.namespace("shop").list().unwrap()), "shop/a shop/db shop/web");
    assert_eq!(keys(lister.labels("app=web").unwrap().list().unwrap()), "front/web shop/web");
    let in_shop = lister.namespace("shop").labels("app in (web, db),app!=db").unwrap();
    assert_eq!(keys(in_shop.list().unwrap()), "shop/web");
    assert_eq!(keys(lister.namespace("nowhere").list().unwrap()), "");
    assert_eq!(keys(lister.filter(|object| object.key().name() == "b").unwrap()), "front/b");
    assert!(lister.labels("app in (").is_err());
}

#[tokio::test(start_paused = true)]
async fn c7_what_is_not_there_is_not_found() {
    let (_server, _factory, informer) = live(&["shop/a"]).await;
    let lister = informer.lister();
    assert!(lister.get("shop/a").is_ok());
    assert!(lister.namespace("shop").get("a").is_ok());
    for (error, name) in [
        (lister.get("shop/b").unwrap_err(), "shop/b"),
        (lister.namespace("front").get("a").unwrap_err(), "front/a"),
        (lister.labels("app=web").unwrap().get("shop/a").unwrap_err(), "shop/a"),
    ] {
        assert!(error.is_not_found());
        assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
    }
    let invalid = lister.get("a/b/c").unwrap_err();
    assert!(!invalid.is_not_found() && invalid.to_string().contains("`a/b/c`"), "{invalid}");
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
        let page: Vec<_> = snapshot.page(after.as_ref(), 10).into_iter().map(Result::unwrap).collect();
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
    assert!(informer.lister().get("node-1").is_ok());
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
    assert!(informer.lister().list().err().unwrap().is_decode());
    let (readable, unreadable) = informer.lister().list_readable();
    assert_eq!((readable.len(), unreadable.len()), (1, 1));
    assert!(!unreadable[0].to_string().contains("treasure"), "content in an error: {}", unreadable[0]);

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
    let Change::Added { object, initial, .. } = next(&mut changes).await else { panic!("no addition") };
    assert_eq!((object.number, initial), (4, false));
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
