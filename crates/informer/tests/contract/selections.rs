//! F2: which objects an informer has.

use std::time::Duration;

use informer::{FieldSelector, Informer, Object, Selector, SharedInformerFactory, Status};
use serde_json::json;

use super::server::Server;
use super::support::{LONG, cached, factory, nodes, pods, settle, until};

fn selections(factory: &SharedInformerFactory) -> (String, String) {
    let selection = factory.selection();
    (selection.labels().to_string(), selection.fields().to_string())
}

#[tokio::test]
async fn f2_each_selector_narrows_the_one_before() {
    let server = Server::new();
    let factory = factory(&server).with_labels("one=1").unwrap().with_fields("a=1").unwrap();
    let narrowed = factory.with_labels("two=2").unwrap().with_fields("b!=2").unwrap();
    assert_eq!(selections(&narrowed), ("one=1,two=2".to_owned(), "a=1,b!=2".to_owned()));
    assert_eq!(selections(&factory), ("one=1".to_owned(), "a=1".to_owned()));
    assert!(narrowed.everything().selection().is_everything());
    let informer = narrowed.informer_of::<Object>(pods());
    informer.start();
    until("it lists", || server.count("LIST") == 1).await;
    let selected = "fieldSelector=a=1,b!=2 labelSelector=one=1,two=2";
    assert!(server.log().iter().any(|line| line.contains(selected)), "{:?}", server.log());
}

#[tokio::test(start_paused = true)]
async fn f1_equal_selections_share_a_watch_however_they_are_written() {
    let server = Server::new();
    let factory = factory(&server);
    let labels = ["a=1,b=2", "b=2,a=1", " b == 2 , a in (1)", "a=1,b=2,a=1"];
    let fields = [
        "spec.nodeName=c,status.phase!=d",
        "status.phase!=d , spec.nodeName==c",
        "spec.nodeName=c,status.phase!=d,",
    ];
    let mut informers: Vec<Informer<Object>> = Vec::new();
    for labels in labels {
        for fields in fields {
            let selected = factory.with_labels(labels).unwrap().with_fields(fields).unwrap();
            informers.push(selected.informer_of(pods()));
        }
    }
    let (labels, fields): (Selector, FieldSelector) =
        (labels[0].parse().unwrap(), fields[0].parse().unwrap());
    let values = factory.with_fields(fields).unwrap().with_labels(&labels).unwrap();
    informers.push(values.with_labels(labels).unwrap().informer_of(pods()));
    factory.start();
    factory.wait_for_sync(LONG).await.unwrap();
    until("the watch runs", || server.count("WATCH") > 0).await;
    assert_eq!((server.count("LIST"), server.count("WATCH")), (1, 1));
    let shown = format!("{:?}", informers[0]);
    let selected = "labels a=1,b=2, fields spec.nodeName=c,status.phase!=d";
    assert_eq!(shown, format!("Informer(pods.v1, all namespaces, {selected})"));
}

/// A malformed selector was sent, and came back as a 400.
#[tokio::test]
async fn f2_selectors_are_checked_where_they_are_given() {
    let server = Server::new();
    let factory = factory(&server);
    let error = factory.with_labels("app in cart").unwrap_err();
    assert_eq!((error.text(), error.position()), ("app in cart", 7));
    let error = factory.with_fields("spec.nodeName").unwrap_err();
    assert_eq!((error.text(), error.position()), ("spec.nodeName", 13));
    assert_eq!(server.log(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn f2_namespaces_narrow_and_none_is_not_all() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    server.put("pods", "front/b", json!({}));
    server.put("nodes", "one", json!({}));
    let two = super::support::builder(&server).build().unwrap().in_namespaces(["shop", "front", "shop"]);
    assert_eq!(two.selection().to_string(), "namespaces front, shop");
    let shop = two.in_namespaces(["shop", "back"]);
    assert_eq!(shop.selection().to_string(), "namespace shop");
    let none = shop.in_namespace("front");
    assert_eq!(none.selection().to_string(), "no namespace");

    let informer = none.informer_of::<Object>(pods());
    let mut changes = informer.changes().unwrap();
    none.start();
    none.wait_for_sync(Duration::from_secs(1)).await.unwrap();
    assert!(informer.is_synced() && informer.is_empty());
    assert!(matches!(informer.status(), Status::Live { .. }), "{:?}", informer.status());
    assert!(matches!(super::support::next(&mut changes).await, informer::Change::Synced));
    settle().await;
    assert_eq!(server.log(), [""; 0], "there is nothing to ask for");
    // A cluster-scoped object is in no namespace.
    let nodes = none.informer_of::<Object>(nodes());
    nodes.start();
    nodes.wait_for_sync(LONG).await.unwrap();
    assert_eq!(nodes.len(), 1);

    assert!(informer.add_namespace("front"));
    until("it is there", || cached(&informer) == ["front/b@102"]).await;
    assert!(informer.remove_namespace("front").await);
    assert!(informer.is_empty() && matches!(informer.status(), Status::Live { .. }));
}

/// The only namespace is denied, and then removed: what is left has nothing to wait for.
#[tokio::test(start_paused = true)]
async fn f7_without_namespaces_nothing_is_missing() {
    let server = Server::new();
    server.deny("pods/shop", 403, "Forbidden");
    let factory = factory(&server).in_namespace("shop");
    let informer = factory.informer_of::<Object>(pods());
    factory.start();
    assert!(factory.wait_for_sync_or_denial(LONG).await.unwrap_err().is_denied());
    assert!(informer.remove_namespace("shop").await);
    factory.wait_for_sync(Duration::ZERO).await.unwrap();
    assert!(matches!(informer.status(), Status::Live { .. }));
}
