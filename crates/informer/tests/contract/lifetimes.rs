//! F5: an informer lives exactly as long as somebody has a handle of it.

use std::any::Any;
use std::sync::{Arc, Mutex, Weak};

use futures_util::StreamExt;
use informer::{Handler, Informer, Item, Object, Registration};
use serde_json::json;

use super::server::Server;
use super::support::{Recorder, factory, live, pods, settle, soon, tasks, until};

/// A kind of handle and how to get one.
type Take = fn(&Informer<Object>) -> Box<dyn Any + Send>;

const HANDLES: [(&str, Take); 9] = [
    ("informer", |informer| Box::new(informer.clone())),
    ("lister", |informer| Box::new(informer.lister().namespace("shop"))),
    ("snapshot", |informer| Box::new(informer.snapshot())),
    ("index", |informer| Box::new(informer.add_index(|object| [object.key().name().to_owned()]))),
    ("named index", |informer| Box::new(informer.add_named_index("name", |_| ["x".to_owned()]).unwrap())),
    ("changes", |informer| Box::new(informer.changes().unwrap())),
    ("subscribe", |informer| Box::new(informer.subscribe())),
    ("registration", |informer| Box::new(informer.add_handler(Recorder::new().0).unwrap())),
    ("status", |informer| Box::new(informer.status_changes().boxed())),
];

#[tokio::test(start_paused = true)]
async fn f5_the_last_handle_of_any_kind_closes_the_watch_and_frees_the_memory() {
    let before = tasks();
    for (name, take) in HANDLES {
        let (server, factory, informer) = live(&["shop/a"]).await;
        let object = Arc::downgrade(informer.lister().get("shop/a").unwrap().unwrap().object());
        let handle = take(&informer);
        drop(informer);
        settle().await;
        assert_eq!(server.open(), 1, "a {name} keeps the informer alive");
        server.put("pods", "shop/b", json!({}));
        settle().await;
        drop(handle);
        until(&format!("nothing of {name} is left"), || {
            server.open() == 0 && tasks() == before && object.strong_count() == 0
        })
        .await;
        // The factory has a new one for who asks again.
        assert!(!factory.informer_of::<Object>(pods()).is_synced(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn f5_the_factory_alone_keeps_nothing_and_is_not_needed() {
    let (server, factory, informer) = live(&["shop/a"]).await;
    drop(factory);
    server.put("pods", "shop/b", json!({}));
    until("it goes on", || informer.len() == 2).await;
    drop(informer);
    until("the watch is closed", || server.open() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn f5_a_detached_handler_lives_until_the_stop() {
    let before = tasks();
    let (server, factory, informer) = live(&["shop/a"]).await;
    let (recorder, log) = Recorder::new();
    informer.add_handler(recorder).unwrap().detach();
    drop(informer);
    server.put("pods", "shop/b", json!({}));
    log.until("add shop/b@102").await;
    soon(factory.shutdown()).await;
    assert_eq!(server.open(), 0);
    until("no task is left", || tasks() == before).await;
}

/// Many handlers have a lister of the objects that they are told of.
struct HasLister(#[allow(dead_code, reason = "what counts is that it is held")] informer::Lister<Object>);

impl Handler<Object> for HasLister {}

#[tokio::test(start_paused = true)]
async fn f5_a_handler_with_a_handle_of_its_own_informer_is_no_leak() {
    let before = tasks();
    let (server, _factory, informer) = live(&["shop/a"]).await;
    let registration = informer.add_handler(HasLister(informer.lister())).unwrap();
    assert!(soon(registration.synced()).await);
    drop(informer);
    drop(registration);
    until("nothing is left", || server.open() == 0 && tasks() == before).await;
}

/// Drops the last handle of its own informer in the middle of a call.
struct DropsAll(Arc<Mutex<Option<Handles>>>);

type Handles = (Informer<Object>, Registration);

impl Handler<Object> for DropsAll {
    async fn on_add(&mut self, _: Item<Object>, _: bool) {
        let all = self.0.lock().unwrap().take();
        drop(all);
    }
}

#[tokio::test(start_paused = true)]
async fn f5_the_last_handle_may_be_dropped_inside_of_a_handler() {
    let before = tasks();
    let (server, _factory, informer) = live(&[]).await;
    let all = Arc::new(Mutex::new(None));
    let registration = informer.add_handler(DropsAll(all.clone())).unwrap();
    assert!(soon(registration.synced()).await);
    *all.lock().unwrap() = Some((informer, registration));
    server.put("pods", "shop/a", json!({}));
    until("nothing is left", || server.open() == 0 && tasks() == before).await;
}

/// The same on the thread that drives connections: an index function runs there.
#[tokio::test(start_paused = true)]
async fn f5_the_last_handle_may_be_dropped_inside_of_an_index_function() {
    let before = tasks();
    let (server, _factory, informer) = live(&[]).await;
    let last = Arc::new(Mutex::new(None));
    let held: Weak<Mutex<Option<Informer<Object>>>> = Arc::downgrade(&last);
    let index = informer.add_named_index("drops", move |_| {
        let last = held.upgrade().and_then(|held| held.lock().unwrap().take());
        drop(last);
        ["x".to_owned()]
    });
    drop(index);
    *last.lock().unwrap() = Some(informer);
    server.put("pods", "shop/a", json!({}));
    until("nothing is left", || server.open() == 0 && tasks() == before).await;
}

#[tokio::test(start_paused = true)]
async fn f5_an_informer_that_was_never_started_leaves_nothing_either() {
    let before = tasks();
    let server = Server::new();
    let factory = factory(&server);
    let informer = factory.informer_of::<Object>(pods());
    let registration = informer.add_handler(Recorder::new().0).unwrap();
    drop((registration, informer));
    until("nothing is left", || tasks() == before).await;
    factory.start();
    settle().await;
    assert_eq!(server.log(), [""; 0], "nobody wants it any more");
}
