//! The inbox of a controller, to which sources add while its loop waits. The loop is woken by tokio: each of tokio's operations
//! is one step here.

use std::sync::Arc;

use informer::{Object, ObjectKey, ResourceVersion};
use informer_core::Time;
use informer_core::control::{CacheStates, Control, Step};
use informer_core::queue::{Config, Queue};
use loom::future::block_on;
use loom::thread;

use super::bounded;
use crate::inbox::Inbox;
use crate::trigger::Trigger;

fn inbox() -> Arc<Inbox> {
    let mut control = Control::new(Queue::new(&Config::default()));
    control.set_workers(8);
    control.resume(Time::ZERO);
    Arc::new(Inbox::new(control))
}

fn add(inbox: &Inbox, key: &str) {
    inbox.changed(key.parse().unwrap(), Trigger::Object, 0);
}

/// Nothing is written here.
struct NoCaches;

impl CacheStates for NoCaches {
    fn object(&self, _: usize, _: &ObjectKey) -> Option<Arc<Object>> {
        None
    }

    fn version(&self, _: usize) -> ResourceVersion {
        ResourceVersion::new("")
    }
}

/// The key that can begin now.
fn next(inbox: &Inbox) -> Option<ObjectKey> {
    let mut control = inbox.control();
    match control.next(inbox.now(), &NoCaches) {
        Some(Step::Reconcile(work)) => Some(work.key),
        Some(Step::AwaitWrites(..)) => panic!("nothing was written"),
        None => None,
    }
}

/// Takes this many keys, as the loop waits for them.
fn take(inbox: &Inbox, count: usize) -> Vec<ObjectKey> {
    block_on(async {
        let mut taken = Vec::new();
        loop {
            taken.extend(std::iter::from_fn(|| next(inbox)));
            if taken.len() == count {
                return taken;
            }
            inbox.wait().await;
        }
    })
}

#[test]
fn q6_the_loop_misses_no_key() {
    bounded(3).check(|| {
        let inbox = inbox();
        let sources = ["shop/a", "shop/b"].map(|key| {
            let inbox = inbox.clone();
            thread::spawn(move || add(&inbox, key))
        });
        let mut taken = take(&inbox, 2);
        taken.sort();
        assert_eq!(taken.iter().map(ObjectKey::as_str).collect::<Vec<_>>(), ["shop/a", "shop/b"]);
        for source in sources {
            source.join().unwrap();
        }
    });
}

#[test]
fn q6_a_wait_that_is_dropped_takes_no_wake_up_with_it() {
    bounded(3).check(|| {
        let inbox = inbox();
        let adding = inbox.clone();
        let source = thread::spawn(move || add(&adding, "shop/a"));
        // The loop was woken by something else, and had looked before.
        let early = next(&inbox);
        block_on(async {
            let mut wait = std::pin::pin!(inbox.wait());
            std::future::poll_fn(|context| {
                let _ = wait.as_mut().poll(context);
                std::task::Poll::Ready(())
            })
            .await;
        });
        let taken = early.map_or_else(|| take(&inbox, 1), |key| vec![key]);
        assert_eq!(taken.len(), 1);
        source.join().unwrap();
    });
}
