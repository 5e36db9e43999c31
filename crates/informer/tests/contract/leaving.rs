//! H14: an object that leaves the view of a subscription was not deleted, and says so.

use informer::{Change, Changes, DeleteReason, Deleted, Existence, Item, Keep, Object, Origin, Transform};
use serde_json::json;

use super::server::Server;
use super::support::{
    builder, factory, labelled, live, next, pods, settle, soon, started, until, until_synced,
};

async fn gone(changes: &mut Changes<Object>) -> Deleted<Object> {
    match next(changes).await {
        Change::Deleted(deleted) => deleted,
        change => panic!("{change:?} is no deletion"),
    }
}

#[tokio::test(start_paused = true)]
async fn h14_f7_a_removed_namespace_takes_its_objects_out_of_view() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    let factory = factory(&server).in_namespaces(["shop", "front"]);
    let informer = started(&factory).await;
    let mut changes = informer.changes().unwrap();
    until_synced(&mut changes).await;
    assert!(informer.remove_namespace("shop").await);
    let deleted = gone(&mut changes).await;
    assert_eq!((deleted.reason(), deleted.origin()), (DeleteReason::LeftView, Origin::Scope));
    assert!(!deleted.is_certain() && !deleted.is_missed());
    assert_eq!(deleted.key().as_str(), "shop/a");
    let exists = Existence::Exists { resource_version: "101".into() };
    assert_eq!(soon(deleted.confirm()).await.unwrap(), exists);
    assert_eq!(server.count("GET /api/v1/namespaces/shop/pods/a (metadata)"), 1);
}

#[tokio::test(start_paused = true)]
async fn h14_h12_an_object_that_leaves_a_filter_was_not_deleted() {
    let (server, _factory, informer) = live(&[]).await;
    let is_web = |pod: &Item<Object>| pod.labels().value("app") == Some("web");
    let mut changes = informer.subscribe().filter(is_web).changes().unwrap();
    until_synced(&mut changes).await;
    let enter = async |changes: &mut Changes<Object>, key: &str| {
        server.put("pods", key, labelled("app", "web"));
        assert!(matches!(next(changes).await, Change::Added { .. }));
    };

    enter(&mut changes, "shop/leaves").await;
    server.put("pods", "shop/leaves", json!({}));
    let left = gone(&mut changes).await;
    assert_eq!((left.reason(), left.origin()), (DeleteReason::LeftView, Origin::Watch));
    assert_eq!(left.last().labels().value("app"), Some("web"), "the state that was in");
    assert!(!soon(left.confirm()).await.unwrap().is_gone());
    // An object that leaves may be deleted later: `confirm` compares the uid.
    server.delete("pods", "shop/leaves");
    assert_eq!(soon(left.confirm()).await.unwrap(), Existence::Gone);
    server.put("pods", "shop/leaves", json!({}));
    assert!(matches!(soon(left.confirm()).await.unwrap(), Existence::Recreated { .. }));

    enter(&mut changes, "shop/deleted").await;
    server.delete("pods", "shop/deleted");
    let deleted = gone(&mut changes).await;
    assert_eq!((deleted.reason(), deleted.is_certain()), (DeleteReason::Observed, true));
    let requests = server.log().len();
    assert_eq!(soon(deleted.confirm()).await.unwrap(), Existence::Gone);
    assert_eq!(server.log().len(), requests, "a uid never comes back: nobody is asked");

    // Deleted and created again between two looks, the new one out of the filter: the old one was deleted.
    enter(&mut changes, "shop/again").await;
    server.delete("pods", "shop/again");
    server.put("pods", "shop/again", json!({}));
    until("it is back", || informer.len() == 2).await;
    settle().await;
    assert_eq!(gone(&mut changes).await.reason(), DeleteReason::Observed);
}

#[tokio::test(start_paused = true)]
async fn h14_a_selector_hides_whether_an_object_was_deleted() {
    for (labels, fields, reason) in [
        ("", "", DeleteReason::Observed),
        ("app=web", "", DeleteReason::DeletedOrDeselected),
        ("", "spec.nodeName=node-1", DeleteReason::DeletedOrDeselected),
        // Neither ever changes.
        ("", "metadata.name=a,metadata.namespace=shop", DeleteReason::Observed),
    ] {
        let server = Server::new();
        let on_node = json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "nodeName": "node-1" } });
        server.put("pods", "shop/a", on_node);
        let factory = factory(&server).with_labels(labels).unwrap().with_fields(fields).unwrap();
        let informer = started(&factory).await;
        let mut changes = informer.changes().unwrap();
        until_synced(&mut changes).await;
        server.delete("pods", "shop/a");
        let deleted = gone(&mut changes).await;
        assert_eq!((deleted.reason(), deleted.origin()), (reason, Origin::Watch), "{labels} {fields}");
        assert_eq!(soon(deleted.confirm()).await.unwrap(), Existence::Gone);
    }
}

#[tokio::test(start_paused = true)]
async fn h14_tweaked_list_options_hide_deletions_only_where_they_select() {
    for (name, value, reason) in [
        ("timeoutSeconds", "30", DeleteReason::Observed),
        ("labelSelector", "app=web", DeleteReason::DeletedOrDeselected),
    ] {
        let server = Server::new();
        server.put("pods", "shop/a", labelled("app", "web"));
        let tweaked = builder(&server).tweak_list_options(move |_, query| {
            query.retain(|(other, _)| other != name);
            query.push((name.to_owned(), value.to_owned()));
        });
        let factory = tweaked.build().unwrap();
        let informer = started(&factory).await;
        let mut changes = informer.changes().unwrap();
        until_synced(&mut changes).await;
        server.delete("pods", "shop/a");
        assert_eq!(gone(&mut changes).await.reason(), reason, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn h14_a_transform_that_drops_objects_hides_whether_one_was_deleted() {
    let server = Server::new();
    for key in ["shop/a", "shop/b"] {
        server.put("pods", key, json!({}));
    }
    let drops = Transform::json(|object| {
        Ok(if object["metadata"]["labels"]["hidden"].is_null() { Keep::Yes } else { Keep::No })
    });
    let factory = builder(&server).transform(drops).build().unwrap();
    let informer = started(&factory).await;
    let mut changes = informer.changes().unwrap();
    until_synced(&mut changes).await;
    server.delete("pods", "shop/b");
    assert_eq!(gone(&mut changes).await.reason(), DeleteReason::Observed, "nothing was dropped so far");
    server.put("pods", "shop/a", labelled("hidden", "yes"));
    let dropped = gone(&mut changes).await;
    assert_eq!(dropped.reason(), DeleteReason::DeletedOrDeselected);
    assert!(!soon(dropped.confirm()).await.unwrap().is_gone());
}

#[tokio::test(start_paused = true)]
async fn h14_a_question_that_is_not_answered_is_an_error_and_may_be_given_up() {
    let server = Server::new();
    server.put("pods", "shop/a", labelled("app", "web"));
    let factory = factory(&server).with_labels("app=web").unwrap();
    let informer = factory.informer_of::<Object>(pods());
    let mut changes = informer.changes().unwrap();
    factory.start();
    until_synced(&mut changes).await;
    until("the watch runs", || server.open() == 1).await;
    server.delete("pods", "shop/a");
    let deleted = gone(&mut changes).await;

    server.hold("pods");
    let mut asked = Box::pin(deleted.confirm());
    until("it was asked", || {
        assert!(futures_util::FutureExt::now_or_never(&mut asked).is_none());
        server.open() == 2
    })
    .await;
    drop(asked);
    until("the request is over", || server.open() == 1).await;
    let late = soon(deleted.confirm()).await.unwrap_err();
    assert!(late.is_unreachable(), "{late}");

    server.release("pods");
    server.deny("pods", 403, "Forbidden");
    let denied = soon(deleted.confirm()).await.unwrap_err();
    assert!(denied.status().is_some_and(|status| status.is_forbidden()), "{denied}");
    server.deny("pods", 401, "Unauthorized");
    let refreshed = server.count("REFRESH");
    let denied = soon(deleted.confirm()).await.unwrap_err();
    assert!(denied.status().is_some_and(|status| status.is_unauthorized()), "{denied}");
    assert!(server.count("REFRESH") > refreshed, "credentials are read again once");
    // A path that is not served says nothing about the object.
    server.deny("pods", 404, "");
    assert!(soon(deleted.confirm()).await.unwrap_err().status().is_some());

    informer.stop().await;
    assert!(soon(deleted.confirm()).await.unwrap_err().is_stopped());
    drop((informer, factory, changes));
    assert!(soon(deleted.confirm()).await.unwrap_err().is_stopped());
}

/// RBAC allows names with other letters than those of DNS. In a path, `+` is a plus and not a space (RFC 3986).
#[tokio::test(start_paused = true)]
async fn h14_an_object_whose_name_has_a_space_is_confirmed_under_that_name() {
    for (name, segment) in [("my role", "my%20role"), ("a+b", "a%2Bb"), ("100%day?", "100%25day%3F")] {
        let server = Server::new();
        let key = format!("shop/{name}");
        server.put("pods", &key, json!({}));
        let factory = factory(&server).in_namespaces(["shop", "front"]);
        let informer = started(&factory).await;
        let mut changes = informer.changes().unwrap();
        until_synced(&mut changes).await;
        assert!(informer.remove_namespace("shop").await);
        let left = gone(&mut changes).await;
        assert!(!soon(left.confirm()).await.unwrap().is_gone(), "{:?}", server.log());
        assert_eq!(server.count(&format!("GET /api/v1/namespaces/shop/pods/{segment} ")), 1);
    }
}
