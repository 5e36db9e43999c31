//! Group C: the cache, its indexes and snapshots, through handles of types.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer::{
    Change, Deleted, Handler, Informer, Item, Object, ObjectKey, Previous, ResourceVersion, Snapshot,
};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::server::Server;
use super::support::{
    LONG, cached, caught_up, factory, labelled, live, next, pods, soon, started, until, until_synced,
};

/// Looks into the cache at each call: it must have what the call says, or something newer.
struct LooksBack {
    informer: Informer<Object>,
    wrong: Arc<Mutex<Vec<String>>>,
    calls: Arc<AtomicUsize>,
}

impl LooksBack {
    fn look(&self, object: &Object, there: bool) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let version: u64 = object.resource_version().to_string().parse().unwrap();
        let known = self.informer.lister().get(object.key()).unwrap();
        let known = known.map(|known| known.resource_version().to_string().parse::<u64>().unwrap());
        let reached: u64 = self.informer.resource_version().to_string().parse().unwrap();
        let right = match known {
            Some(known) => known >= version,
            None => !there || reached > version,
        };
        if !right {
            self.wrong.lock().unwrap().push(format!("told {object:?}, cached {known:?}"));
        }
    }
}

impl Handler<Object> for LooksBack {
    async fn on_add(&mut self, object: Item<Object>, _: bool) {
        self.look(&object, true);
    }

    async fn on_update(&mut self, _: Previous<Object>, object: Item<Object>) {
        self.look(&object, true);
    }

    async fn on_delete(&mut self, deleted: Deleted<Object>) {
        self.look(deleted.last(), false);
    }
}

#[tokio::test(start_paused = true)]
async fn c1_the_cache_is_ahead_of_every_notification() {
    let (server, _factory, informer) = live(&["shop/0", "shop/1"]).await;
    let (wrong, calls) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<AtomicUsize>::default());
    let looks = LooksBack { informer: informer.clone(), wrong: wrong.clone(), calls: calls.clone() };
    let _registration = informer.add_handler(looks).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    for step in 0..300 {
        let key = format!("shop/{}", random.u8(..10));
        if server.content("pods").contains_key(&key) && random.bool() {
            server.delete("pods", &key);
        } else {
            server.put("pods", &key, json!({}));
        }
        match step % 50 {
            20 => server.expire("pods"),
            40 => server.break_watches("pods"),
            _ => {}
        }
        tokio::task::yield_now().await;
    }
    caught_up(&server, &informer).await;
    assert_eq!(*wrong.lock().unwrap(), [""; 0]);
    assert!(calls.load(Ordering::SeqCst) > 50);
}

#[tokio::test(start_paused = true)]
async fn c2_an_index_has_what_is_there_and_no_more() {
    let (server, _factory, informer) = live(&[]).await;
    let by_app = informer.add_index(|object| object.labels().value("app").map(str::to_owned));
    server.put("pods", "shop/a", labelled("app", "web"));
    server.put("pods", "shop/b", labelled("app", "web"));
    caught_up(&server, &informer).await;
    assert_eq!(by_app.get("web").len(), 2);
    server.put("pods", "shop/a", labelled("app", "db"));
    server.delete("pods", "shop/b");
    caught_up(&server, &informer).await;
    assert_eq!((by_app.get("web").len(), by_app.get("db").len()), (0, 1));
    let keys = by_app.keys(&informer.snapshot());
    assert_eq!(keys.iter().map(|key| key.as_str()).collect::<Vec<_>>(), ["db"]);
}

#[tokio::test(start_paused = true)]
async fn c3_f8_an_index_can_come_late_and_a_name_only_once() {
    let (server, _factory, informer) = live(&["shop/a", "front/a", "front/b"]).await;
    let namespace = |object: &Item<Object>| object.key().namespace().map(str::to_owned);
    let by_namespace = informer.add_named_index("namespace", namespace).unwrap();
    assert_eq!((by_namespace.get("front").len(), by_namespace.get("shop").len()), (2, 1));
    let taken = informer.add_named_index("namespace", |_| ["other".to_owned()]);
    assert!(taken.err().unwrap().is_index_exists());
    assert_eq!(by_namespace.get("other").len(), 0);
    server.put("pods", "front/c", json!({}));
    caught_up(&server, &informer).await;
    assert_eq!(informer.index_named("namespace").unwrap().get("front").len(), 3);
    assert!(informer.index_named("other").is_none());
}

#[tokio::test(start_paused = true)]
async fn c3_an_index_function_that_panics_spoils_nothing_else() {
    let (server, _factory, informer) = live(&["shop/a", "shop/bad"]).await;
    let by_name = informer.add_index(|object| {
        assert!(object.key().name() != "bad", "as the test wants it");
        [object.key().name().to_owned()]
    });
    server.put("pods", "shop/b", json!({}));
    server.put("pods", "shop/bad", json!({}));
    caught_up(&server, &informer).await;
    assert_eq!((informer.len(), by_name.get("a").len(), by_name.get("b").len()), (3, 1, 1));
    assert_eq!(by_name.get("bad").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn c4_a_snapshot_stays_as_it_is_and_agrees_with_its_indexes() {
    let (server, _factory, informer) = live(&[]).await;
    let by_turn = informer.add_index(|object| object.labels().value("turn").map(str::to_owned));
    type Seen = (Snapshot<Object>, Vec<String>, ResourceVersion, BTreeMap<String, usize>);
    let contents = |snapshot: &Snapshot<Object>| {
        let mut objects: Vec<_> = snapshot.objects().map(|object| format!("{object:?}")).collect();
        objects.sort();
        let turns: BTreeMap<String, usize> = (0..4)
            .map(|turn| turn.to_string())
            .map(|turn| (turn.clone(), by_turn.lookup(snapshot, turn.as_str()).count()))
            .collect();
        (objects, snapshot.resource_version(), turns)
    };
    let mut taken: Vec<Seen> = Vec::new();
    let mut random = fastrand::Rng::with_seed(3);
    for step in 0..200 {
        server.put(
            "pods",
            &format!("shop/{}", random.u8(..20)),
            labelled("turn", &random.u8(..4).to_string()),
        );
        if step % 60 == 59 {
            server.expire("pods");
        }
        for _ in 0..random.u8(..6) {
            tokio::task::yield_now().await;
        }
        let snapshot = informer.snapshot();
        let (objects, version, turns) = contents(&snapshot);
        assert_eq!(
            turns.values().sum::<usize>(),
            objects.len(),
            "step {step}: the index agrees with the objects"
        );
        let newest = snapshot
            .objects()
            .map(|object| object.resource_version().clone())
            .max_by(|a, b| a.compare(b).unwrap());
        assert!(newest.is_none_or(|newest| version.is_at_least(&newest)), "step {step}: at {version:?}");
        taken.push((snapshot, objects, version, turns));
    }
    caught_up(&server, &informer).await;
    for (snapshot, objects, version, turns) in taken {
        assert_eq!(contents(&snapshot), (objects, version, turns));
    }
}

#[tokio::test(start_paused = true)]
async fn c5_the_version_only_rises_and_bookmarks_count() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let mut reached = informer.resource_version();
    let mut random = fastrand::Rng::with_seed(5);
    for step in 0..200 {
        match random.u8(..8) {
            0 => server.bookmark("pods"),
            1 if step % 3 == 0 => server.expire("pods"),
            2 => server.break_watches("pods"),
            3 => server.end_watches("pods"),
            _ => _ = server.put("pods", &format!("shop/{}", random.u8(..5)), json!({})),
        }
        for _ in 0..random.u8(..20) {
            tokio::task::yield_now().await;
            let now = informer.resource_version();
            assert!(now.is_at_least(&reached), "step {step}: {reached:?} then {now:?}");
            reached = now;
        }
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    until("the watch runs", || server.open() == 1).await;
    server.bookmark("pods");
    let version = ResourceVersion::new(&server.version().to_string());
    informer.at_least(&version, LONG).await.unwrap();
    assert_eq!(informer.resource_version(), version);
}

#[tokio::test(start_paused = true)]
async fn c5_at_least_resolves_when_ones_own_write_is_there() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    server.hold("pods");
    server.break_watches("pods");
    let version = ResourceVersion::new(&server.put("pods", "shop/b", json!({})).to_string());
    let begin = tokio::time::Instant::now();
    let late = informer.at_least(&version, Duration::from_secs(3)).await.unwrap_err();
    assert!(late.is_timeout() && begin.elapsed() == Duration::from_secs(3), "{late}");
    let text = format!("pods.v1 (all namespaces) has not reached resourceVersion {version} within 3 s: ");
    assert!(late.to_string().starts_with(&text), "{late}");
    let wait = informer.at_least(&version, LONG);
    server.release("pods");
    wait.await.unwrap();
    assert!(informer.lister().get("shop/b").unwrap().is_some());
    // A version that was reached already resolves at once, also after the end.
    soon(informer.stop()).await;
    informer.at_least(&version, LONG).await.unwrap();
    informer.at_least(&ResourceVersion::UNSET, LONG).await.unwrap();
    let never = informer.at_least(&ResourceVersion::new("999999"), LONG).await.unwrap_err();
    assert!(never.is_stopped(), "{never}");
}

#[tokio::test(start_paused = true)]
async fn c5_gone_resolves_when_ones_own_deletion_is_there() {
    let (server, _factory, informer) = live(&["shop/a", "shop/b"]).await;
    let a = informer.lister().get("shop/a").unwrap().unwrap();
    let gone = || informer.gone(a.key(), a.uid(), Duration::from_secs(3));
    assert!(gone().await.unwrap_err().is_timeout());
    server.delete("pods", "shop/a");
    gone().await.unwrap();
    assert_eq!(informer.len(), 1);
    // Another object of that name is another object.
    server.put("pods", "shop/a", json!({}));
    until("it is there", || informer.len() == 2).await;
    gone().await.unwrap();
    // Found out by a list.
    let b = informer.lister().get("shop/b").unwrap().unwrap();
    server.break_watches("pods");
    server.delete("pods", "shop/b");
    server.expire("pods");
    informer.gone(b.key(), b.uid(), LONG).await.unwrap();
    assert!(informer.lister().get("shop/b").unwrap().is_none());
}

/// Before the initial list nothing is known to be gone.
#[tokio::test(start_paused = true)]
async fn c5_what_is_not_listed_yet_is_not_gone() {
    let server = Server::new();
    let factory = factory(&server).in_namespace("shop");
    let informer = factory.informer_of::<Object>(pods());
    let uid = informer::Uid::new("1");
    let gone = |key: &str| {
        let (informer, key, uid) =
            (informer.clone(), key.parse::<informer::ObjectKey>().unwrap(), uid.clone());
        async move { informer.gone(&key, &uid, Duration::from_secs(1)).await }
    };
    assert!(gone("shop/a").await.unwrap_err().is_timeout());
    factory.start();
    gone("shop/a").await.unwrap();
    assert!(gone("front/a").await.unwrap_err().is_not_selected());
}

#[tokio::test(start_paused = true)]
async fn c5_of_versions_that_are_no_numbers_only_the_same_one_is_reached() {
    let server = Server::new();
    server.hold("pods");
    let factory = factory(&server);
    let informer = factory.informer_of::<Object>(pods());
    factory.start();
    let early = informer.clone();
    let any = tokio::spawn(async move { early.at_least(&ResourceVersion::new("0"), LONG).await });
    super::support::settle().await;
    assert!(!any.is_finished(), "nothing is there yet");
    server.release("pods");
    any.await.unwrap().unwrap();
    let opaque = ResourceVersion::new("v1-abc");
    assert!(informer.at_least(&opaque, Duration::from_secs(60)).await.unwrap_err().is_timeout());
    let bookmark = json!({ "type": "BOOKMARK", "object": { "kind": "Pod", "metadata": { "resourceVersion": "v1-abc" } } });
    until("the watch runs", || server.open() == 1).await;
    server.send_line("pods", &format!("{bookmark}\n"));
    informer.at_least(&opaque, LONG).await.unwrap();
}

/// The rest of C6 the compiler sees to: there is no way from an `Arc` that others hold to something that can be changed.
#[tokio::test(start_paused = true)]
async fn c6_everybody_looks_at_the_same_object() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({ "spec": { "nodeName": "node-1", "containers": [] } }));
    let factory = factory(&server);
    let informer = started(&factory).await;
    let typed = factory.informer::<Pod>();
    let mut changes = typed.changes().unwrap();
    let Change::Added { new: told, .. } = next(&mut changes).await else { panic!("nothing there") };
    let mut listed = typed.lister().get("shop/a").unwrap().unwrap().into_value();
    assert!(Arc::ptr_eq(told.value(), &listed));
    assert!(Arc::get_mut(&mut listed).is_none());
    // A copy of one's own changes nothing.
    Arc::make_mut(&mut listed).spec = None;
    assert!(typed.lister().get("shop/a").unwrap().unwrap().spec.is_some());
    let key: ObjectKey = "shop/a".parse().unwrap();
    let (in_snapshot, in_list) = (informer.snapshot().get(&key), informer.lister().get(&key));
    assert!(Arc::ptr_eq(in_snapshot.unwrap().unwrap().value(), in_list.unwrap().unwrap().object()));
}

#[tokio::test(start_paused = true)]
async fn c4_a_snapshot_keeps_its_objects_while_the_cache_goes_on() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let snapshot = informer.snapshot();
    let mut changes = informer.changes().unwrap();
    until_synced(&mut changes).await;
    server.delete("pods", "shop/a");
    next(&mut changes).await;
    assert_eq!(cached(&informer), [""; 0]);
    assert_eq!((snapshot.len(), snapshot.iter().count()), (1, 1));
}
