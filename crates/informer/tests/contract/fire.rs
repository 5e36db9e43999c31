//! Under fire: many threads, real time, and nothing that may be left behind.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use informer::{Change, Handler, Informer, Item, Object, Registration};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::server::Server;
use super::support::{Recorder, builder, cached, content, factory, pods, tasks};

fn threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap()
}

/// Waits in real time: a minute is only met by a failure.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let is_so = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(1));
        while !is_so() {
            ticks.tick().await;
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_secs(60), is_so).await.is_ok(),
        "waited in vain until {what}"
    );
}

async fn in_time<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future).await.unwrap_or_else(|_| panic!("{what} hangs"))
}

/// Counts calls, and yields in the middle of them.
struct Busy {
    calls: Arc<AtomicUsize>,
    /// There is nothing of the handler left when this is gone.
    _whole: Arc<()>,
}

impl Drop for Busy {
    /// Takes its time, so that who does not wait for it shows.
    fn drop(&mut self) {
        for _ in 0..20 {
            std::thread::yield_now();
        }
    }
}

impl Handler<Object> for Busy {
    async fn on_add(&mut self, _: Item<Object>, _: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
    }
}

/// One of the hundred: comes and goes until nothing is to be had any more.
async fn come_and_go(informer: Informer<Object>, seed: u64, calls: Arc<AtomicUsize>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut mine: Vec<(Registration, Weak<()>)> = Vec::new();
    loop {
        match random.u8(..8) {
            0..=2 if mine.len() < 4 => {
                let whole = Arc::new(());
                let weak = Arc::downgrade(&whole);
                match informer.add_handler(Busy { calls: calls.clone(), _whole: whole }) {
                    Ok(registration) => mine.push((registration, weak)),
                    Err(error) => {
                        assert!(error.is_stopped(), "{error}");
                        return;
                    }
                }
            }
            3 => drop(mine.pop()),
            4 => {
                if let Some((registration, handler)) = mine.pop() {
                    registration.remove().await;
                    assert_eq!(handler.strong_count(), 0, "the handler is still there after its removal");
                }
            }
            5 => {
                if let Some((registration, _)) = mine.first() {
                    registration.synced().await;
                }
            }
            6 => {
                let Ok(mut changes) = informer.changes() else { return };
                for _ in 0..random.u8(..20) {
                    let Some(change) = changes.next().await else { return };
                    if matches!(change, Change::Synced) {
                        break;
                    }
                }
            }
            _ => tokio::task::yield_now().await,
        }
    }
}

#[test]
fn h5_h13_a_hundred_tasks_add_and_remove_handlers_under_fire() {
    let runtime = threads();
    runtime.block_on(async {
        let before = tasks();
        let server = Server::new();
        server.put_many("pods", (0..100).map(|number| format!("shop/{number}")));
        let factory = factory(&server);
        let informer = factory.informer_of::<Object>(pods());
        let calls = Arc::<AtomicUsize>::default();
        factory.start();
        let mut hundred = JoinSet::new();
        for seed in 0..100 {
            hundred.spawn(come_and_go(informer.clone(), seed, calls.clone()));
        }
        let mut random = fastrand::Rng::with_seed(13);
        for event in 0..10_000 {
            server.put("pods", &format!("shop/{}", random.u8(..100)), json!({}));
            match event % 1_000 {
                300 => server.expire("pods"),
                600 => server.break_watches("pods"),
                _ => {}
            }
            if event % 16 == 0 {
                tokio::task::yield_now().await;
            }
        }
        until("the cache has all of it", || cached(&informer) == content(&server)).await;
        until("they had their share", || calls.load(Ordering::Relaxed) > 1_000).await;
        assert_eq!(hundred.len(), 100);
        in_time("the stop", factory.shutdown()).await;
        in_time("one of the hundred", async {
            while let Some(ended) = hundred.join_next().await {
                ended.unwrap();
            }
        })
        .await;
        let object = Arc::downgrade(informer.lister().get("shop/0").unwrap().unwrap().object());
        drop((informer, factory));
        until("no task is left", || tasks() == before && server.open() == 0).await;
        until("no memory is held", || object.strong_count() == 0).await;
    });
}

/// Subscribing races with what happens: no gap, no duplicate, wherever it falls. And so do resyncs, which are no news.
#[test]
fn d4_h2_nothing_is_missed_or_told_twice_when_joining_under_fire() {
    let runtime = threads();
    runtime.block_on(async {
        let server = Server::new();
        let factory = factory(&server);
        let informer = factory.informer_of::<Object>(pods());
        factory.start();
        let (done, rounds) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let mut joiners = JoinSet::new();
        for seed in 0..8 {
            let (informer, done, rounds) = (informer.clone(), done.clone(), rounds.clone());
            joiners.spawn(async move {
                let mut random = fastrand::Rng::with_seed(seed);
                while !done.load(Ordering::Relaxed) {
                    let often = Duration::from_micros(100);
                    let mut changes = informer.subscribe().resync(often).changes().unwrap();
                    let mut believed = std::collections::HashMap::new();
                    for _ in 0..random.u16(..2_000) {
                        let next = tokio::time::timeout(Duration::from_millis(50), changes.next()).await;
                        match next {
                            Err(_) => break,
                            Ok(Some(Change::Added { new: object, .. })) => {
                                let before = believed.insert(object.key().clone(), object);
                                assert!(before.is_none(), "told twice: {before:?}");
                            }
                            Ok(Some(Change::Updated { old, new, .. })) => {
                                let before = believed.insert(new.key().clone(), new);
                                let follows =
                                    before.is_some_and(|before| Arc::ptr_eq(before.object(), old.object()));
                                assert!(follows, "a gap before {old:?}");
                            }
                            Ok(Some(Change::Deleted(deleted))) => {
                                assert!(believed.remove(deleted.key()).is_some(), "{deleted:?} of nothing");
                            }
                            Ok(Some(Change::Resynced(object))) => {
                                let known = believed.get(object.key());
                                let same =
                                    known.is_some_and(|known| Arc::ptr_eq(known.object(), object.object()));
                                assert!(same, "a resync of {object:?} after {known:?}");
                            }
                            Ok(Some(_)) => {}
                            Ok(None) => panic!("it has ended"),
                        }
                    }
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut random = fastrand::Rng::with_seed(17);
        let begin = std::time::Instant::now();
        for event in 0.. {
            if event > 20_000 && rounds.load(Ordering::Relaxed) >= 50 {
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "only {rounds:?} rounds");
            let key = format!("shop/{}", random.u8(..30));
            if random.u8(..4) == 0 && server.content("pods").contains_key(&key) {
                server.delete("pods", &key);
            } else {
                server.put("pods", &key, json!({}));
            }
            if event % 2_000 == 0 {
                server.expire("pods");
            }
            if event % 8 == 0 {
                tokio::task::yield_now().await;
            }
        }
        done.store(true, Ordering::Relaxed);
        in_time("a joiner", async {
            while let Some(joined) = joiners.join_next().await {
                joined.unwrap();
            }
        })
        .await;
        in_time("the stop", factory.shutdown()).await;
    });
}

/// Two sources of one cache on two threads: everybody hears of both in the order of the cache.
#[test]
fn c5_h1_several_namespaces_at_once_tell_one_story() {
    let runtime = threads();
    runtime.block_on(async {
        let server = Server::new();
        let spaces = ["a", "b", "c", "d"];
        let factory = builder(&server).build().unwrap().in_namespaces(spaces);
        let informer = factory.informer_of::<Object>(pods());
        let mut changes = informer.changes().unwrap();
        factory.start();
        let reached = {
            let informer = informer.clone();
            tokio::spawn(async move {
                let mut last = informer.resource_version();
                while !informer.is_stopped() {
                    let now = informer.resource_version();
                    assert!(last.is_unset() || now.is_at_least(&last), "{last:?} then {now:?}");
                    last = now;
                    tokio::task::yield_now().await;
                }
            })
        };
        let mut random = fastrand::Rng::with_seed(19);
        for event in 0..5_000 {
            let space = spaces[random.usize(..4)];
            server.put("pods", &format!("{space}/{}", random.u8(..10)), json!({}));
            if event % 500 == 0 {
                let removal = informer.remove_namespace(space);
                assert!(in_time("the removal", removal).await);
                assert!(informer.add_namespace(space));
            }
            if event % 8 == 0 {
                tokio::task::yield_now().await;
            }
        }
        until("the cache has all of it", || cached(&informer) == content(&server)).await;
        let mut believed = std::collections::HashMap::new();
        in_time("the story", async {
            let mut synced = false;
            while !synced || changes.backlog() > 0 {
                match changes.next().await.unwrap() {
                    Change::Added { new: object, .. } => {
                        assert!(believed.insert(object.key().clone(), object).is_none());
                    }
                    Change::Updated { old, new, .. } => {
                        let before = believed.insert(new.key().clone(), new).unwrap();
                        assert!(Arc::ptr_eq(before.object(), old.object()));
                    }
                    Change::Deleted(deleted) => assert!(believed.remove(deleted.key()).is_some()),
                    Change::Synced => synced = true,
                    other => panic!("{other:?}"),
                }
            }
        })
        .await;
        assert_eq!(believed.len(), informer.len());
        in_time("the stop", factory.shutdown()).await;
        reached.await.unwrap();
    });
}

/// Asking, adding, dropping and stopping at the same time, over and over: nothing hangs, nothing stays.
#[test]
fn f4_f5_h6_informers_come_and_go_on_many_threads() {
    let runtime = threads();
    runtime.block_on(async {
        let before = tasks();
        let server = Server::new();
        server.put("pods", "shop/a", json!({}));
        for round in 0..100 {
            let factory = builder(&server).start_at_once().build().unwrap();
            let mut users = JoinSet::new();
            for user in 0..8 {
                let factory = factory.clone();
                users.spawn(async move {
                    for _ in 0..5 {
                        let informer = factory.informer_of::<Object>(pods());
                        let registration = informer.add_handler(Recorder::new().0);
                        if user % 2 == 0 {
                            drop(informer);
                        } else {
                            informer.retry_now();
                        }
                        if let Ok(registration) = registration {
                            match user % 3 {
                                0 => drop(registration),
                                1 => registration.remove().await,
                                _ => registration.detach(),
                            }
                        }
                    }
                });
            }
            if round % 2 == 0 {
                in_time("the stop", factory.shutdown()).await;
            }
            in_time("a user", async {
                while let Some(ended) = users.join_next().await {
                    ended.unwrap();
                }
            })
            .await;
            in_time("the stop", factory.shutdown()).await;
        }
        until("nothing is left", || tasks() == before && server.open() == 0).await;
    });
}
