//! Group H: handlers and subscriptions.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer::{Change, Deleted, Handler, Informer, Item, Object, Previous, Registration};
use serde_json::json;
use tokio::sync::Notify;

use super::server::Server;
use super::support::{
    Log, Recorder, cached, factory, labelled, live, next, pods, settle, short, soon, started, until,
    until_synced,
};

#[tokio::test(start_paused = true)]
async fn h1_a_handler_is_told_a_legal_story() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let (recorder, log) = Recorder::new();
    let registration = informer.add_handler(recorder).unwrap();
    assert!(soon(registration.synced()).await);
    let first = server.version();
    let updated = server.put("pods", "shop/a", json!({}));
    log.until(&format!("update shop/a@{first} -> shop/a@{updated}")).await;
    let deleted = server.delete("pods", "shop/a");
    log.until(&format!("delete shop/a@{deleted}")).await;
    let again = server.put("pods", "shop/a", json!({}));
    log.until(&format!("add shop/a@{again}")).await;
    assert_eq!(log.len(), 5, "{:?}", log.lines());
}

#[tokio::test(start_paused = true)]
async fn h1_calls_do_not_overlap() {
    struct Slow {
        inside: Arc<AtomicUsize>,
        most: Arc<AtomicUsize>,
        calls: Arc<AtomicUsize>,
    }
    impl Handler<Object> for Slow {
        async fn on_add(&mut self, _: Item<Object>, _: bool) {
            let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(inside, Ordering::SeqCst);
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
            self.inside.fetch_sub(1, Ordering::SeqCst);
            self.calls.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (server, _factory, informer) = live(&[]).await;
    let [inside, most, calls] = std::array::from_fn(|_| Arc::<AtomicUsize>::default());
    let slow = Slow { inside, most: most.clone(), calls: calls.clone() };
    let _registration = informer.add_handler(slow).unwrap();
    server.put_many("pods", (0..50).map(|number| format!("shop/{number}")));
    until("all are handled", || calls.load(Ordering::SeqCst) == 50).await;
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn h2_h3_h4_a_handler_from_before_the_start_sees_everything() {
    let server = Server::new();
    server.put("pods", "shop/a", json!({}));
    server.put("pods", "shop/b", json!({}));
    let factory = factory(&server);
    let informer = factory.informer_of::<Object>(pods());
    let (recorder, log) = Recorder::new();
    let registration = informer.add_handler(recorder).unwrap();
    assert!(!registration.is_synced());
    factory.start();
    assert!(soon(registration.synced()).await && registration.is_synced());
    assert_eq!(log.take(), ["add shop/a@101 initial", "add shop/b@102 initial", "synced"]);
    server.put("pods", "shop/c", json!({}));
    log.until("add shop/c@103").await;
}

#[tokio::test(start_paused = true)]
async fn h2_h3_a_late_handler_gets_what_is_there_and_pauses_nobody() {
    let (server, _factory, informer) = live(&["shop/a", "shop/b"]).await;
    let (recorder, early) = Recorder::new();
    let first = informer.add_handler(recorder).unwrap();
    assert!(soon(first.synced()).await);
    early.take();
    server.put("pods", "shop/c", json!({}));
    let (recorder, late) = Recorder::new();
    let second = informer.add_handler(recorder).unwrap();
    early.until("add shop/c@103").await;
    assert!(soon(second.synced()).await);
    server.put("pods", "shop/a", json!({}));
    late.until("update shop/a@101 -> shop/a@104").await;
    let mut told = late.take();
    told.sort();
    // The third came in between: in the content or after it, once.
    let third = told.iter().filter(|line| line.starts_with("add shop/c@103")).count();
    assert_eq!(third, 1, "{told:?}");
    assert!(told.contains(&"add shop/a@101 initial".to_owned()), "{told:?}");
    assert!(told.contains(&"add shop/b@102 initial".to_owned()), "{told:?}");
    assert_eq!(told.len(), 5, "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn h3_a_relist_marks_nothing_as_initial() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let (recorder, log) = Recorder::new();
    let registration = informer.add_handler(recorder).unwrap();
    assert!(soon(registration.synced()).await);
    log.take();
    server.hold("pods");
    server.break_watches("pods");
    server.put("pods", "shop/b", json!({}));
    server.expire("pods");
    server.release("pods");
    log.until("add shop/b@102").await;
    assert_eq!(log.take(), ["add shop/b@102"]);
}

#[tokio::test(start_paused = true)]
async fn h4_synced_is_only_said_when_the_content_was_processed() {
    struct Gated(Arc<Notify>, Log);
    impl Handler<Object> for Gated {
        async fn on_add(&mut self, object: Item<Object>, _: bool) {
            self.0.notified().await;
            self.1.push(object.key().as_str());
        }
    }
    let (_server, _factory, informer) = live(&["shop/a", "shop/b"]).await;
    let (gate, log) = (Arc::new(Notify::new()), Log::default());
    let registration = informer.add_handler(Gated(gate.clone(), log.clone())).unwrap();
    settle().await;
    assert!(!registration.is_synced());
    gate.notify_one();
    settle().await;
    assert!(!registration.is_synced() && log.len() == 1);
    gate.notify_one();
    assert!(soon(registration.synced()).await);
    assert_eq!(log.len(), 2);
}

/// Panics wherever it is told to, and counts what it was told.
struct Panics(Log);

impl Handler<Object> for Panics {
    async fn on_add(&mut self, object: Item<Object>, _: bool) {
        self.0.push(format!("add {}", object.key()));
        assert!(object.key().name() != "bad", "as the test wants it");
    }

    async fn on_update(&mut self, _: Previous<Object>, object: Item<Object>) {
        self.0.push(format!("update {}", object.key()));
        tokio::task::yield_now().await;
        panic!("as the test wants it");
    }

    async fn on_delete(&mut self, deleted: Deleted<Object>) {
        self.0.push(format!("delete {}", deleted.key()));
    }

    async fn on_synced(&mut self) {
        panic!("as the test wants it");
    }
}

#[tokio::test(start_paused = true)]
async fn h4_h7_a_panicking_handler_goes_on_syncs_and_hurts_nobody() {
    let server = Server::new();
    for key in ["shop/a", "shop/bad", "shop/c"] {
        server.put("pods", key, json!({}));
    }
    let factory = factory(&server);
    let informer = factory.informer_of::<Object>(pods());
    let log = Log::default();
    let bad = informer.add_handler(Panics(log.clone())).unwrap();
    let (recorder, other) = Recorder::new();
    let good = informer.add_handler(recorder).unwrap();
    factory.start();
    assert!(soon(bad.synced()).await && soon(good.synced()).await);
    assert_eq!(log.take(), ["add shop/a", "add shop/bad", "add shop/c"]);
    let version = server.put("pods", "shop/bad", json!({}));
    log.until("update shop/bad").await;
    server.delete("pods", "shop/bad");
    log.until("delete shop/bad").await;
    other.until(&format!("delete shop/bad@{}", version + 1)).await;
    assert!(!informer.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn h7_h12_an_object_for_which_a_filter_panics_is_not_in() {
    let (server, _factory, informer) = live(&["shop/a", "shop/b"]).await;
    let (recorder, log) = Recorder::new();
    let panics = |object: &Item<Object>| {
        assert!(object.labels().value("mood") != Some("bad"), "as the test wants it");
        true
    };
    let registration = informer.subscribe().filter(panics).handler(recorder).unwrap();
    assert!(soon(registration.synced()).await);
    log.take();
    let version = server.put("pods", "shop/a", labelled("mood", "bad"));
    log.until("delete shop/a@101 left").await;
    server.put("pods", "shop/a", json!({}));
    log.until(&format!("add shop/a@{}", version + 1)).await;
    assert_eq!(log.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn h5_removal_leaves_the_others_alone() {
    let (server, _factory, informer) = live(&[]).await;
    let (recorder, removed) = Recorder::new();
    let first = informer.add_handler(recorder).unwrap();
    let (recorder, dropped) = Recorder::new();
    let second = informer.add_handler(recorder).unwrap();
    let (recorder, stays) = Recorder::new();
    let third = informer.add_handler(recorder).unwrap();
    assert!(soon(first.synced()).await && soon(second.synced()).await && soon(third.synced()).await);
    soon(first.remove()).await;
    drop(second);
    server.put("pods", "shop/a", json!({}));
    stays.until("add shop/a@101").await;
    settle().await;
    assert_eq!((removed.lines(), dropped.lines()), (vec!["synced".to_owned()], vec!["synced".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn h5_removal_waits_for_the_call_under_way() {
    struct Gated(Arc<Notify>, Arc<AtomicBool>, Arc<AtomicBool>);
    impl Handler<Object> for Gated {
        async fn on_add(&mut self, _: Item<Object>, _: bool) {
            self.1.store(true, Ordering::SeqCst);
            self.0.notified().await;
            self.2.store(true, Ordering::SeqCst);
        }
    }
    let (_server, _factory, informer) = live(&["shop/a", "shop/b"]).await;
    let gate = Arc::new(Notify::new());
    let [began, ended] = std::array::from_fn(|_| Arc::<AtomicBool>::default());
    let registration = informer.add_handler(Gated(gate.clone(), began.clone(), ended.clone())).unwrap();
    until("the call has begun", || began.load(Ordering::SeqCst)).await;
    began.store(false, Ordering::SeqCst);
    let mut removal = Box::pin(registration.remove());
    assert!(tokio::time::timeout(Duration::from_secs(60), &mut removal).await.is_err());
    gate.notify_one();
    soon(removal).await;
    assert!(ended.load(Ordering::SeqCst), "the call was not over");
    settle().await;
    assert!(!began.load(Ordering::SeqCst), "another call after the removal");
}

#[tokio::test(start_paused = true)]
async fn h5_the_wait_for_a_removal_may_be_given_up() {
    let (server, _factory, informer) = live(&[]).await;
    let (recorder, log) = Recorder::new();
    let registration = informer.add_handler(recorder).unwrap();
    assert!(soon(registration.synced()).await);
    drop(registration.remove());
    server.put("pods", "shop/a", json!({}));
    settle().await;
    assert_eq!(log.lines(), ["synced"]);
}

/// Has its own registration, and uses it in its first call.
struct RemovesItself(Arc<Mutex<Option<Registration>>>, Log);

impl Handler<Object> for RemovesItself {
    async fn on_add(&mut self, object: Item<Object>, _: bool) {
        self.1.push(object.key().as_str());
        let registration = self.0.lock().unwrap().take();
        if let Some(registration) = registration {
            soon(registration.remove()).await;
        }
        self.1.push("removed");
    }
}

#[tokio::test(start_paused = true)]
async fn h5_removal_from_inside_of_the_handler_does_not_deadlock() {
    let (server, _factory, informer) = live(&[]).await;
    let (slot, log) = (Arc::new(Mutex::new(None)), Log::default());
    let registration = informer.add_handler(RemovesItself(slot.clone(), log.clone())).unwrap();
    assert!(soon(registration.synced()).await);
    *slot.lock().unwrap() = Some(registration);
    server.put_many("pods", ["shop/a".to_owned(), "shop/b".to_owned()]);
    log.until("removed").await;
    settle().await;
    assert_eq!(log.lines(), ["shop/a", "removed"]);
    until("the handler is gone", || Arc::strong_count(&slot) == 1).await;
}

#[tokio::test(start_paused = true)]
async fn h5_whoever_awaits_the_removal_finds_the_handler_gone() {
    struct Holds(#[allow(dead_code, reason = "what counts is when it is dropped")] Arc<()>);
    impl Handler<Object> for Holds {}
    let (_server, _factory, informer) = live(&["shop/a"]).await;
    for _ in 0..20 {
        let held = Arc::new(());
        let registration = informer.add_handler(Holds(held.clone())).unwrap();
        soon(registration.remove()).await;
        assert_eq!(Arc::strong_count(&held), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn h6_a_stopped_informer_takes_no_handlers_but_gives_them_back() {
    let (_server, _factory, informer) = live(&[]).await;
    let (recorder, _log) = Recorder::new();
    let registration = informer.add_handler(recorder).unwrap();
    soon(informer.stop()).await;
    let (recorder, _log) = Recorder::new();
    assert!(informer.add_handler(recorder).err().unwrap().is_stopped());
    assert!(informer.changes().err().unwrap().is_stopped());
    soon(registration.remove()).await;
}

#[tokio::test(start_paused = true)]
async fn h6_stopped_is_stopped_from_the_moment_that_the_token_is_cancelled() {
    let server = Server::new();
    let token = tokio_util::sync::CancellationToken::new();
    let factory = super::support::builder(&server).stop_token(token.clone()).build().unwrap();
    let informer = started(&factory).await;
    token.cancel();
    // Nothing has run since.
    assert!(informer.add_handler(Recorder::new().0).err().unwrap().is_stopped());
    assert!(factory.informer_of::<Object>(pods()).add_handler(Recorder::new().0).err().unwrap().is_stopped());
}

#[tokio::test(start_paused = true)]
async fn h9_an_object_that_a_relist_brings_unchanged_is_no_event() {
    let (server, _factory, informer) = live(&["shop/a", "shop/b"]).await;
    let (recorder, log) = Recorder::new();
    let registration = informer.add_handler(recorder).unwrap();
    assert!(soon(registration.synced()).await);
    log.take();
    let lists = server.count("LIST");
    server.expire("pods");
    until("it was listed again", || server.count("LIST") > lists && server.open() == 1).await;
    let version = server.put("pods", "shop/b", json!({}));
    log.until(&format!("update shop/b@102 -> shop/b@{version}")).await;
    assert_eq!(log.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn h10_a_missed_deletion_is_told_once_as_missed() {
    let (server, _factory, informer) = live(&["shop/a", "shop/b"]).await;
    let (recorder, log) = Recorder::new();
    let registration = informer.add_handler(recorder).unwrap();
    assert!(soon(registration.synced()).await);
    let updated = server.put("pods", "shop/a", json!({}));
    log.until(&format!("update shop/a@101 -> shop/a@{updated}")).await;
    log.take();
    server.hold("pods");
    server.break_watches("pods");
    server.delete("pods", "shop/a");
    server.expire("pods");
    server.release("pods");
    // The last state that anybody saw.
    log.until(&format!("delete shop/a@{updated} missed")).await;
    server.expire("pods");
    settle().await;
    server.put("pods", "shop/c", json!({}));
    until("the next one came", || log.len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn h11_deleted_and_made_again_unseen_is_told_apart() {
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let mut merged = informer.changes().unwrap();
    let mut split = informer.subscribe().split_recreated().changes().unwrap();
    until_synced(&mut merged).await;
    until_synced(&mut split).await;
    server.hold("pods");
    server.break_watches("pods");
    server.delete("pods", "shop/a");
    let again = server.put("pods", "shop/a", json!({}));
    server.expire("pods");
    server.release("pods");
    let Change::Updated { old, new, .. } = next(&mut merged).await else { panic!("not an update") };
    assert_ne!(old.object().uid(), new.uid());
    assert_eq!(short(&next(&mut split).await), "delete shop/a@101 missed");
    assert_eq!(short(&next(&mut split).await), format!("add shop/a@{again}"));
}

async fn filtered(server: &Server, informer: &Informer<Object>) -> (Registration, Log) {
    server.put("pods", "shop/in", labelled("app", "web"));
    server.put("pods", "shop/out", json!({}));
    until("both are there", || informer.len() == 2).await;
    let (recorder, log) = Recorder::new();
    let filter = |object: &Item<Object>| object.labels().value("app") == Some("web");
    let registration = informer.subscribe().filter(filter).handler(recorder).unwrap();
    assert!(soon(registration.synced()).await);
    assert_eq!(log.take(), ["add shop/in@101 initial", "synced"]);
    (registration, log)
}

#[tokio::test(start_paused = true)]
async fn h12_filters_turn_updates_into_adds_and_deletes() {
    let (server, _factory, informer) = live(&[]).await;
    let (_registration, log) = filtered(&server, &informer).await;
    server.put("pods", "shop/out", labelled("app", "web"));
    log.until("add shop/out@103").await;
    server.put("pods", "shop/out", labelled("app", "web"));
    log.until("update shop/out@103 -> shop/out@104").await;
    server.put("pods", "shop/out", json!({}));
    log.until("delete shop/out@104 left").await;
    server.put("pods", "shop/out", json!({}));
    server.delete("pods", "shop/out");
    server.delete("pods", "shop/in");
    log.until("delete shop/in@108").await;
    assert_eq!(log.len(), 4, "{:?}", log.lines());
}

/// A deletion is delivered if the object was, whether or not its last state matches.
#[tokio::test(start_paused = true)]
async fn h1_h12_a_deletion_is_told_although_the_last_state_does_not_match() {
    let (server, _factory, informer) = live(&[]).await;
    server.put("pods", "shop/in", labelled("app", "web"));
    server.put("pods", "shop/out", json!({}));
    until("both are there", || informer.len() == 2).await;
    let filter = |object: &Item<Object>| object.labels().value("app") == Some("web");
    let mut changes = informer.subscribe().filter(filter).changes().unwrap();
    until_synced(&mut changes).await;
    // Nobody reads meanwhile: what is told is one deletion, whose last state is out.
    server.put("pods", "shop/in", json!({}));
    let deleted = server.delete("pods", "shop/in");
    // And one whose last state is in, of an object that was never told.
    server.put("pods", "shop/out", labelled("app", "web"));
    server.delete("pods", "shop/out");
    server.put("pods", "shop/end", labelled("app", "web"));
    until("all of it is in the cache", || cached(&informer) == ["shop/end@107"]).await;
    assert_eq!(short(&next(&mut changes).await), format!("delete shop/in@{deleted}"));
    assert_eq!(short(&next(&mut changes).await), "add shop/end@107");
}
