//! Readers of the pods: handlers and streams of all kinds, each with a ledger of its notifications.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

use conformance::{Story, within};
use futures_util::StreamExt;
use informer::{
    Change, Deleted, Handler, Informer, Item, Object, ObjectKey, Origin, Previous, Registration,
    ResourceVersion, Subscribe, Uid,
};
use tokio::sync::watch;
use tokio::time::Interval;

use super::writers::Written;

/// All handlers and streams.
pub(super) struct Handlers {
    informer: Informer<Object>,
    ledgers: Vec<Ledger>,
    registrations: Vec<Registration>,
    hurry: watch::Sender<bool>,
}

/// How fast a handler is.
pub(super) enum Pace {
    Fast,
    /// So slow that changes have to be merged for it, until it is told to hurry.
    Slow,
}

/// The notifications of one reader.
struct Ledger {
    name: &'static str,
    /// Whether the handler's objects must be this part of the cache only.
    only_web: bool,
    book: watch::Receiver<Book>,
}

#[derive(Default)]
struct Book {
    story: Story,
    lives: HashMap<Uid, Life>,
    changes: usize,
    missed: usize,
    recreated: usize,
    /// The first thing that cannot be.
    wrong: Option<String>,
}

/// How often an incarnation began and ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Life {
    added: u32,
    deleted: u32,
}

struct Recorder {
    informer: Informer<Object>,
    book: watch::Sender<Book>,
    pause: Option<Interval>,
    hurry: watch::Receiver<bool>,
}

const SLOW: Duration = Duration::from_millis(20);

impl Handlers {
    pub(super) fn of(informer: &Informer<Object>) -> Self {
        let (ledgers, registrations) = (Vec::new(), Vec::new());
        Self { informer: informer.clone(), ledgers, registrations, hurry: watch::Sender::new(false) }
    }

    /// Adds a handler.
    pub(super) fn call(&mut self, name: &'static str, subscription: Subscribe<Object>, pace: Pace) {
        let recorder = self.recorder(name, false, pace);
        self.registrations.push(subscription.handler(recorder).expect("a running informer"));
    }

    /// Adds a stream of only the pods that [`is_web`].
    pub(super) fn stream_of_web(&mut self, name: &'static str, subscription: Subscribe<Object>) {
        let mut recorder = self.recorder(name, true, Pace::Fast);
        let mut changes = subscription.filter(|pod| is_web(pod)).changes().expect("a running informer");
        tokio::spawn(async move {
            while let Some(change) = changes.next().await {
                recorder.record(&change).await;
            }
        });
    }

    fn recorder(&mut self, name: &'static str, only_web: bool, pace: Pace) -> Recorder {
        let (book, reader) = watch::channel(Book::default());
        self.ledgers.push(Ledger { name, only_web, book: reader });
        let pause = match pace {
            Pace::Fast => None,
            Pace::Slow => Some(tokio::time::interval(SLOW)),
        };
        Recorder { informer: self.informer.clone(), book, pause, hurry: self.hurry.subscribe() }
    }

    /// The slow ones are slow no more.
    pub(super) fn hurry(&self) {
        self.hurry.send_replace(true);
    }

    /// Waits until each of them knows what the cache has, and checks that all they were told was possible.
    pub(super) async fn agree_with_the_cache(&mut self, seed: u64) {
        let snapshot = self.informer.snapshot();
        for ledger in &mut self.ledgers {
            let view: BTreeMap<ObjectKey, (Uid, ResourceVersion)> = snapshot
                .objects()
                .filter(|pod| !ledger.only_web || is_web(pod))
                .map(|pod| (pod.key().clone(), (pod.uid().clone(), pod.resource_version().clone())))
                .collect();
            let agrees = ledger.book.wait_for(|book| book.story.view() == &view || book.wrong.is_some());
            let what = format!("seed {seed}: `{}` knows what the cache has", ledger.name);
            let book = within(&what, agrees).await.expect("a running handler");
            assert_eq!(book.wrong, None, "seed {seed}, {}", ledger.name);
            assert!(book.story.is_synced());
        }
    }

    /// Checks that each incarnation was told to begin and to end just once, whatever was merged; that those who are
    /// told everything were told of all that came after `relisted_at`; and that there was something to miss before.
    pub(super) fn were_told_of_each_life(&self, written: &Written, relisted_at: &ResourceVersion, seed: u64) {
        // An object that crosses a filter's border begins and ends at each crossing.
        for ledger in self.ledgers.iter().filter(|ledger| !ledger.only_web) {
            let book = ledger.book.borrow();
            let name = ledger.name;
            let living: HashMap<_, _> = book.story.view().values().cloned().collect();
            for (uid, life) in &book.lives {
                let deleted = u32::from(!living.contains_key(uid));
                assert_eq!(*life, Life { added: 1, deleted }, "seed {seed}, {name}, {uid}");
            }
            if name.starts_with("every change") {
                let seen = |(_, version): &(&Uid, &ResourceVersion)| relisted_at.is_older_than(version);
                for (uid, version) in written.created.iter().filter(seen) {
                    assert!(book.lives.contains_key(uid), "seed {seed}, {name}, {uid} at {version}");
                }
                assert!(book.missed > 0, "seed {seed}: no deletion was missed");
            }
            if name.ends_with("split") {
                assert_eq!(book.recreated, 0, "seed {seed}");
            }
        }
    }
}

/// Whether a pod is of the tier that the filter is for.
fn is_web(pod: &Object) -> bool {
    pod.labels().value("tier") == Some("web")
}

impl Recorder {
    async fn record(&mut self, change: &Change<Object>) {
        if let Some(pause) = &mut self.pause
            && !*self.hurry.borrow()
        {
            pause.tick().await;
        }
        let behind = self.cache_is_behind(change);
        self.book.send_modify(|book| {
            book.count(change);
            let wrong = book.story.apply(change).err();
            if book.wrong.is_none() {
                book.wrong = wrong.or_else(|| behind.then(|| format!("the cache was behind {change:?}")));
            }
        });
    }

    /// Whether the cache has something older than what is told, which it never may (C1).
    fn cache_is_behind(&self, change: &Change<Object>) -> bool {
        let (told, is_there) = match change {
            Change::Added { new: object, .. } | Change::Updated { new: object, .. } => (object, true),
            Change::Deleted(deleted) => (deleted.last(), false),
            _ => return false,
        };
        let cached = self.informer.lister().get(told.key()).ok().flatten();
        match cached {
            Some(cached) if is_there => cached.resource_version().is_older_than(told.resource_version()),
            Some(cached) => !told.resource_version().is_older_than(cached.resource_version()),
            // It may have been deleted since.
            None => !self.informer.resource_version().is_at_least(told.resource_version()),
        }
    }
}

impl Book {
    fn count(&mut self, change: &Change<Object>) {
        self.changes += 1;
        match change {
            Change::Added { new: object, .. } => self.life(object).added += 1,
            Change::Updated { old, new, .. } if old.object().uid() != new.uid() => {
                self.life(old.object()).deleted += 1;
                self.life(new).added += 1;
                self.recreated += 1;
            }
            Change::Deleted(deleted) => {
                self.life(deleted.last()).deleted += 1;
                self.missed += usize::from(deleted.is_missed());
            }
            _ => {}
        }
    }

    fn life(&mut self, object: &Object) -> &mut Life {
        self.lives.entry(object.uid().clone()).or_default()
    }
}

impl Handler<Object> for Recorder {
    async fn on_add(&mut self, object: Item<Object>, initial: bool) {
        self.record(&Change::Added { new: object, initial, origin: Origin::Watch }).await;
    }

    async fn on_update(&mut self, old: Previous<Object>, new: Item<Object>) {
        self.record(&Change::Updated { old, new, origin: Origin::Watch }).await;
    }

    async fn on_delete(&mut self, deleted: Deleted<Object>) {
        self.record(&Change::Deleted(deleted)).await;
    }

    async fn on_synced(&mut self) {
        self.record(&Change::Synced).await;
    }
}

impl fmt::Display for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ledger in &self.ledgers {
            let book = ledger.book.borrow();
            let Book { changes, lives, missed, recreated, .. } = &*book;
            let name = ledger.name;
            let lives = lives.len();
            writeln!(
                f,
                "{name:26} {changes:5} changes, {lives:5} lives, {missed:3} missed, {recreated:3} recreated"
            )?;
        }
        Ok(())
    }
}
