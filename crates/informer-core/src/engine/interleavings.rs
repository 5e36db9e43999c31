//! Tests of subscribing, notifying and stopping, with every order of the threads' steps, under loom (`cargo xtask loom`).

use std::collections::BTreeMap;
use std::task::Poll;

use crate::mailbox::{Mode, Notice, WhenFull};
use crate::{Change, Delta, Object};

use loom::future::block_on;
use loom::thread;

use super::*;
use crate::mailbox::Delivery;
use crate::sync::Mutex;

/// A store and its subscriptions, connected as in the engine.
struct World {
    store: Mutex<Store>,
    source: SourceId,
    cache: Cache,
    fanout: Fanout,
}

impl World {
    fn new() -> Arc<Self> {
        let mut store = Store::new();
        let source = store.add_source(Scope::All);
        let cache = store.cache();
        Arc::new(Self { store: Mutex::new(store), source, cache, fanout: Fanout::default() })
    }

    fn upsert(&self, name: &str, version: u64) {
        let json = format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}}}}"#);
        let object = Arc::new(Object::from_json(json.as_bytes()).unwrap());
        let told = {
            let mut store = self.store.lock().unwrap();
            let changes: Vec<Change> = store.upsert(self.source, object).into_iter().collect();
            self.fanout.offer(store.revision(), &changes)
        };
        told.into_iter().for_each(Waker::wake);
    }

    fn synced(&self) {
        self.fanout.cache_synced().into_iter().for_each(Waker::wake);
    }

    /// Joins as a feed does: it subscribes first, and takes the snapshot afterwards.
    fn subscribe(&self) -> Option<Arc<Subscriber>> {
        let subscriber = self.fanout.subscribe(every())?;
        let snapshot = self.cache.snapshot();
        let present = snapshot.iter().cloned().collect();
        subscriber.with_mailbox(|mailbox| mailbox.join(present, snapshot.revision()))?;
        Some(subscriber)
    }
}

fn every() -> Delivery {
    Delivery { mode: Mode::Every { capacity: 100, when_full: WhenFull::Coalesce }, ..Delivery::default() }
}

/// The notices of a subscription: the content to which they add up, and the number of `Synced` notices.
#[derive(Default)]
struct Told {
    content: BTreeMap<String, String>,
    synced: usize,
}

impl Told {
    fn hear(&mut self, notice: Notice) {
        let change = match notice {
            Notice::Synced => return self.synced += 1,
            Notice::Lagged(_) => panic!("there was room for all"),
            Notice::Change { change, .. } => change,
        };
        let key = change.key().to_string();
        let before = self.content.get(&key);
        let now = |object: &Object| object.resource_version().to_string();
        match &change.delta {
            Delta::Added(new) => {
                assert_eq!(before, None, "{key} was added twice");
                self.content.insert(key, now(new));
            }
            Delta::Updated { old, new } => {
                assert_eq!(before, Some(&now(old)), "{key} was told with a gap");
                self.content.insert(key, now(new));
            }
            Delta::Deleted { .. } => panic!("nothing was deleted"),
        }
    }

    /// Takes notices until the end, in the same order of steps as a feed.
    fn follow(subscriber: &Subscriber) -> Self {
        let mut told = Self::default();
        block_on(std::future::poll_fn(|context| {
            subscriber.register(context.waker());
            if subscriber.is_removed() {
                return Poll::Ready(());
            }
            let closed = subscriber.is_closed();
            while let Some(notice) = subscriber.take() {
                told.hear(notice);
            }
            if closed { Poll::Ready(()) } else { Poll::Pending }
        }));
        told
    }

    fn names(&self) -> Vec<String> {
        self.content.iter().map(|(key, version)| format!("{key}@{version}")).collect()
    }
}

#[test]
fn h2_who_subscribes_while_changes_come_has_each_once() {
    model(3, || {
        let world = World::new();
        world.upsert("a", 1);
        let teller = thread::spawn({
            let world = world.clone();
            move || {
                world.upsert("a", 2);
                world.upsert("b", 3);
            }
        });
        let subscriber = world.subscribe().unwrap();
        teller.join().unwrap();
        world.synced();
        world.fanout.stop().into_iter().for_each(Waker::wake);
        let told = Told::follow(&subscriber);
        assert_eq!((told.names(), told.synced), (vec!["a@2".to_owned(), "b@3".to_owned()], 1));
    });
}

#[test]
fn h4_who_subscribes_while_the_cache_syncs_is_told_so_once() {
    model(3, || {
        let world = World::new();
        world.upsert("a", 1);
        let teller = thread::spawn({
            let world = world.clone();
            move || world.synced()
        });
        let subscriber = world.subscribe().unwrap();
        teller.join().unwrap();
        world.fanout.stop().into_iter().for_each(Waker::wake);
        let told = Told::follow(&subscriber);
        assert_eq!((told.names(), told.synced), (vec!["a@1".to_owned()], 1));
    });
}

#[test]
fn h13_f4_who_waits_hears_everything_and_then_the_end() {
    model(2, || {
        let world = World::new();
        let subscriber = world.subscribe().unwrap();
        let waiter = thread::spawn(move || Told::follow(&subscriber));
        world.upsert("a", 1);
        world.synced();
        world.fanout.stop().into_iter().for_each(Waker::wake);
        let told = waiter.join().unwrap();
        assert_eq!((told.names(), told.synced), (vec!["a@1".to_owned()], 1));
    });
}

#[test]
fn h5_who_waits_ends_when_removed() {
    model(3, || {
        let world = World::new();
        let subscriber = world.subscribe().unwrap();
        let waiter = thread::spawn({
            let subscriber = subscriber.clone();
            move || Told::follow(&subscriber)
        });
        let remover = thread::spawn({
            let world = world.clone();
            move || {
                subscriber.remove();
                world.fanout.unsubscribe(&subscriber);
            }
        });
        world.upsert("a", 1);
        remover.join().unwrap();
        waiter.join().unwrap();
        assert!(world.fanout.is_empty());
    });
}

#[test]
fn h6_h13_who_subscribes_during_a_stop_is_refused_or_ends() {
    model(3, || {
        let world = World::new();
        let stopper = thread::spawn({
            let world = world.clone();
            move || world.fanout.stop().into_iter().for_each(Waker::wake)
        });
        if let Some(subscriber) = world.subscribe() {
            Told::follow(&subscriber);
        }
        stopper.join().unwrap();
        assert!(world.subscribe().is_none());
    });
}

/// Limits the switches between threads that no lock causes: with all of them the tests would take hours.
fn model(preemptions: usize, story: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(story);
}
