//! Group D: the order of changes, and re-lists in one step.

use informer::{Change, Informer, Object, ObjectKey};
use serde_json::json;

use super::server::Server;
use super::support::{cached, content, live, next, short, until, until_synced};

/// While nobody can see it: changes that only a list will tell.
async fn unseen(server: &Server, informer: &Informer<Object>, change: impl FnOnce()) {
    server.hold("pods");
    server.break_watches("pods");
    change();
    server.expire("pods");
    server.release("pods");
    until("the list is in", || cached(informer) == content(server)).await;
}

#[tokio::test(start_paused = true)]
async fn d1_a_queued_deletion_and_what_a_relist_brings_are_both_told() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let mut changes = informer.subscribe().every_change(100, informer::WhenFull::Coalesce).changes().unwrap();
    until_synced(&mut changes).await;
    let deleted = server.delete("pods", "shop/a");
    until("the deletion is queued", || changes.backlog() == 1).await;
    let mut again = 0;
    unseen(&server, &informer, || again = server.put("pods", "shop/a", json!({}))).await;
    assert_eq!(short(&next(&mut changes).await), format!("delete shop/a@{deleted}"));
    assert_eq!(short(&next(&mut changes).await), format!("add shop/a@{again}"));
}

#[tokio::test(start_paused = true)]
async fn d2_d3_h10_what_relists_lack_is_deleted_once() {
    let (server, _factory, informer) = live(&["shop/a", "shop/b"]).await;
    let mut changes = informer.changes().unwrap();
    until_synced(&mut changes).await;
    // A newer state that is queued only.
    let newest = server.put("pods", "shop/a", json!({}));
    until("it is queued", || changes.backlog() == 1).await;
    unseen(&server, &informer, || _ = server.delete("pods", "shop/a")).await;
    unseen(&server, &informer, || _ = server.put("pods", "shop/b", json!({}))).await;
    assert_eq!(short(&next(&mut changes).await), format!("delete shop/a@{newest} missed"));
    assert!(matches!(next(&mut changes).await, Change::Updated { .. }));
    assert_eq!(changes.backlog(), 0);
}

#[tokio::test(start_paused = true)]
async fn d7_c1_at_each_event_of_a_relist_the_cache_is_wholly_new() {
    let (server, _factory, informer) = live(&["shop/a", "shop/b", "shop/c", "shop/d"]).await;
    let mut changes = informer.changes().unwrap();
    until_synced(&mut changes).await;
    unseen(&server, &informer, || {
        server.put("pods", "shop/z", json!({}));
        server.put("pods", "shop/c", json!({}));
        server.delete("pods", "shop/d");
        server.put("pods", "shop/b", json!({}));
        server.delete("pods", "shop/a");
        server.put("pods", "shop/e", json!({}));
    })
    .await;
    let mut told = Vec::new();
    while changes.backlog() > 0 {
        told.push(short(&next(&mut changes).await));
        assert_eq!(cached(&informer), content(&server));
    }
    let (deletions, rest) = told.split_at(2);
    let mut deletions = deletions.to_vec();
    deletions.sort();
    assert_eq!(deletions, ["delete shop/a@101 missed", "delete shop/d@104 missed"]);
    // The server lists in the order of the keys.
    let of_list = [
        "update shop/b@102 -> shop/b@108",
        "update shop/c@103 -> shop/c@106",
        "add shop/e@110",
        "add shop/z@105",
    ];
    assert_eq!(rest, of_list);
}

#[tokio::test(start_paused = true)]
async fn d7_readers_see_the_old_content_until_the_list_is_complete() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let before = cached(&informer);
    server.hold_in_the_middle_of_lists("pods");
    server.break_watches("pods");
    server.put_many("pods", (0..200).map(|number| format!("shop/{number}")));
    server.expire("pods");
    until(
        "the list has begun",
        || matches!(informer.status(), informer::Status::Syncing { received } if received < 200),
    )
    .await;
    super::support::settle().await;
    assert_eq!(cached(&informer), before);
    server.release("pods");
    until("it is complete", || informer.len() == 201).await;
}

/// Some servers send deletions with the version that the object had.
#[tokio::test(start_paused = true)]
async fn d1_a_deletion_at_the_version_that_the_cache_has_is_one() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let mut changes = informer.changes().unwrap();
    until_synced(&mut changes).await;
    let uid = informer.lister().get("shop/a").unwrap().unwrap().uid().to_string();
    let object =
        json!({ "metadata": { "name": "a", "namespace": "shop", "uid": uid, "resourceVersion": "101" } });
    server.send_line("pods", &format!("{}\n", json!({ "type": "DELETED", "object": object })));
    assert_eq!(short(&next(&mut changes).await), "delete shop/a@101");
    let key: ObjectKey = "shop/a".parse().unwrap();
    assert!(informer.snapshot().get(&key).unwrap().is_none());
}
