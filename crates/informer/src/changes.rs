//! The changes of an informer as a stream.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use informer_core::mailbox::Notice;
use informer_core::{Change as Raw, DecodeError, Delta, Object, ObjectKey, Snapshot, Source, View};
use tokio::time::{Instant, Sleep};

use crate::Error;
use crate::change::{Change, Deleted, Previous};
use crate::informer::Informer;
use crate::shared::Subscriber;
use crate::subscribe::{Filter, Subscribe};

/// A stream of changes: what is there, then [`Change::Synced`], then what happens. Keeps its informer alive.
///
/// Dropping it ends the subscription. `next` on it is cancel safe.
#[must_use = "streams do nothing unless polled"]
pub struct Changes<T: View> {
    informer: Informer<T>,
    subscriber: Arc<Subscriber>,
    filter: Option<Filter<T>>,
    /// Keys whose newest version cannot be read, with the last version that was told.
    undecodable: HashMap<ObjectKey, Option<Arc<Object>>>,
    resync: Option<Resync>,
}

/// A resync's timer, and the round under way.
struct Resync {
    period: Duration,
    timer: Pin<Box<Sleep>>,
    round: Option<Round>,
}

/// The objects of one round, read from a snapshot: live changes go first all the time.
struct Round {
    snapshot: Snapshot,
    left: std::vec::IntoIter<Arc<Object>>,
}

impl<T: View> Changes<T> {
    pub(crate) fn subscribe(options: Subscribe<T>) -> Result<Self, Error> {
        let Subscribe { informer, delivery, resync, filter, .. } = options;
        let core = informer.core();
        let subscriber = core.fanout.subscribe(delivery).ok_or_else(|| Error::stopped(&core.resource))?;
        // The snapshot is taken after the subscription began to collect: nothing falls in between.
        let snapshot = core.cache.snapshot();
        let present = snapshot.iter().cloned().collect();
        subscriber.with_mailbox(|mailbox| mailbox.join(present, snapshot.revision()));
        let resync =
            resync.map(|period| Resync { period, timer: Box::pin(tokio::time::sleep(period)), round: None });
        Ok(Self { informer, subscriber, filter, undecodable: HashMap::new(), resync })
    }

    /// The informer whose changes these are.
    pub fn informer(&self) -> &Informer<T> {
        &self.informer
    }

    /// How many changes wait.
    pub fn backlog(&self) -> usize {
        self.subscriber.with_mailbox(|mailbox| mailbox.backlog())
    }

    pub(crate) fn subscriber(&self) -> &Arc<Subscriber> {
        &self.subscriber
    }

    fn tell(&mut self, notice: Notice) -> Option<Change<T>> {
        match notice {
            Notice::Synced => Some(Change::Synced),
            Notice::Lagged(dropped) => Some(Change::Lagged(dropped)),
            Notice::Change { change, initial } => {
                let told =
                    self.decode(change, initial).unwrap_or_else(|error| Some(Change::Undecodable(error)))?;
                self.filtered(told)
            }
        }
    }

    /// Reads a change as the subscription's type, leaving out versions that cannot be read: the story goes on from the
    /// last one that could.
    fn decode(&mut self, change: Raw, initial: bool) -> Result<Option<Change<T>>, DecodeError> {
        let source = change.source;
        match change.delta {
            Delta::Added(new) => match self.informer.view(&new) {
                Ok(object) => {
                    self.undecodable.remove(new.key());
                    Ok(Some(Change::Added { object, initial, source }))
                }
                Err(error) => {
                    self.undecodable.insert(new.key().clone(), None);
                    Err(error)
                }
            },
            Delta::Updated { old, new } => {
                match (self.informer.view(&new), self.undecodable.entry(new.key().clone())) {
                    (Ok(new), Entry::Vacant(_)) => {
                        Ok(Some(Change::Updated { old: Previous::new(old), new, source }))
                    }
                    (Ok(new), Entry::Occupied(entry)) => Ok(Some(match entry.remove() {
                        Some(old) => Change::Updated { old: Previous::new(old), new, source },
                        None => Change::Added { object: new, initial: false, source },
                    })),
                    (Err(error), entry) => {
                        entry.or_insert(Some(old));
                        Err(error)
                    }
                }
            }
            Delta::Deleted { last, .. } => {
                let told = match self.undecodable.remove(last.key()) {
                    Some(None) => return Ok(None),
                    Some(Some(told)) => told,
                    None => last.clone(),
                };
                let (object, view) = match self.informer.view(&last) {
                    Ok(view) => (last, view),
                    // The deletion itself must not be lost.
                    Err(_) => (told.clone(), self.informer.view(&told)?),
                };
                Ok(Some(Change::Deleted(match source {
                    Source::Watch => Deleted::Observed { last: view, object },
                    Source::List | Source::Scope => {
                        Deleted::Missed { key: object.key().clone(), last_known: view, object }
                    }
                })))
            }
        }
    }

    fn filtered(&self, change: Change<T>) -> Option<Change<T>> {
        let Some(filter) = &self.filter else { return Some(change) };
        match change {
            Change::Updated { old, new, source } => {
                let before = old.get().ok();
                let was_in = before.as_deref().is_some_and(|old| filter(old));
                match (was_in.then_some(before).flatten(), filter(&new)) {
                    (Some(_), true) => Some(Change::Updated { old, new, source }),
                    (None, true) => Some(Change::Added { object: new, initial: false, source }),
                    (Some(last), false) => {
                        Some(Change::Deleted(Deleted::Observed { last, object: old.object().clone() }))
                    }
                    (None, false) => None,
                }
            }
            Change::Added { ref object, .. } | Change::Resynced(ref object) => {
                filter(object).then_some(change)
            }
            Change::Deleted(ref deleted) => filter(deleted.last()).then_some(change),
            Change::Synced | Change::Lagged(_) | Change::Undecodable(_) => Some(change),
        }
    }

    /// The next object of a resync, if one is due and nothing else is to be told.
    fn poll_resync(&mut self, context: &mut Context<'_>) -> Poll<Change<T>> {
        loop {
            let Some(resync) = &mut self.resync else { return Poll::Pending };
            let Some(round) = &mut resync.round else {
                std::task::ready!(resync.timer.as_mut().poll(context));
                let period = resync.period;
                resync.timer.as_mut().reset(Instant::now() + period);
                let snapshot = self.informer.core().cache.snapshot();
                let left: Vec<_> = snapshot.iter().cloned().collect();
                resync.round = Some(Round { snapshot, left: left.into_iter() });
                continue;
            };
            // A re-list tells what is new; the round goes on after it.
            if self.informer.core().progress.is_listing() {
                return Poll::Pending;
            }
            // What the snapshot has must have been offered before it can be told again.
            let offered = self.subscriber.with_mailbox(|mailbox| mailbox.revision());
            if offered < round.snapshot.revision() {
                return Poll::Pending;
            }
            let Some(object) = round.left.next() else {
                resync.round = None;
                continue;
            };
            // Whatever changed since will be, or was, told as a change: never go back to an older state.
            let current = self.informer.core().cache.get(object.key());
            if !current.is_some_and(|current| Arc::ptr_eq(&current, &object)) {
                continue;
            }
            let Ok(view) = self.informer.view(&object) else { continue };
            if let Some(change) = self.filtered(Change::Resynced(view)) {
                return Poll::Ready(change);
            }
        }
    }
}

impl<T: View> Stream for Changes<T> {
    type Item = Change<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Change<T>>> {
        let this = &mut *self;
        this.subscriber.waker().register(context.waker());
        if this.subscriber.is_removed() {
            return Poll::Ready(None);
        }
        // What is pending when the informer stops is still told.
        let closed = this.subscriber.is_closed();
        while let Some(notice) = this.subscriber.take() {
            if let Some(change) = this.tell(notice) {
                return Poll::Ready(Some(change));
            }
        }
        if closed {
            return Poll::Ready(None);
        }
        this.poll_resync(context).map(Some)
    }
}

impl<T: View> Unpin for Changes<T> {}

impl<T: View> Drop for Changes<T> {
    fn drop(&mut self) {
        self.informer.core().fanout.unsubscribe(&self.subscriber);
    }
}
