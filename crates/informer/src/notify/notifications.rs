//! The notifications of a subscription: taken from its mailbox, decoded, filtered, with resyncs in between.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use informer_core::mailbox::{Delivery, Filtered, Notice};
use informer_core::{Change as Raw, DecodeError, Delta, Object, ObjectKey, Origin, Room, View};
use tokio::task::coop::poll_proceed;
use tokio::time::Sleep;

use crate::Error;
use crate::inner::{Core, Subscription};
use crate::notify::change::{Change, Previous};
use crate::notify::deleted::{DeleteReason, Deleted};
use crate::read::generated::Generated;
use crate::read::item::Item;

pub(crate) type Filter<T> = Arc<dyn Fn(&Item<T>) -> bool + Send + Sync>;

/// The options of a subscription.
pub(crate) struct Terms<T> {
    pub(crate) delivery: Delivery,
    pub(crate) resync: Option<Duration>,
    pub(crate) filter: Option<Filter<T>>,
    pub(crate) name: Option<String>,
}

/// A subscription that does not keep its informer alive.
pub(crate) struct Notifications<T> {
    core: Arc<Core>,
    subscription: Arc<Subscription>,
    filter: Option<Filter<T>>,
    /// Keys whose newest version is undecodable, with the last delivered version.
    undecodable: HashMap<ObjectKey, Option<Arc<Object>>>,
    resync: Option<Resync>,
}

/// The timer of a resync, and the current round.
struct Resync {
    period: Duration,
    timer: Pin<Box<Sleep>>,
    round: Option<Round>,
}

/// The objects of one round, taken from a snapshot. Pending changes are always delivered first.
struct Round {
    revision: u64,
    left: std::vec::IntoIter<Arc<Object>>,
}

impl<T: View> Notifications<T> {
    pub(crate) fn subscribe(core: &Arc<Core>, terms: Terms<T>) -> Result<Self, Error> {
        let Terms { delivery, resync, filter, name } = terms;
        let core = core.clone();
        if resync.is_some() && tokio::runtime::Handle::try_current().is_err() {
            return Err(Error::no_runtime());
        }
        if core.life.is_stopped() {
            return Err(Error::stopped(&core.resource));
        }
        let subscription = core.subscribe(delivery, name)?;
        // The subscription collects changes before the snapshot is taken, so no change is lost in between.
        let snapshot = core.cache.snapshot();
        let present = snapshot.iter().cloned().collect();
        subscription.with_mailbox(|mailbox| mailbox.join(present, snapshot.revision()));
        let resync =
            resync.map(|period| Resync { period, timer: Box::pin(tokio::time::sleep(period)), round: None });
        Ok(Self { core, subscription, filter, undecodable: HashMap::new(), resync })
    }

    pub(crate) fn subscription(&self) -> &Arc<Subscription> {
        &self.subscription
    }

    /// The name of the subscription for logs.
    pub(crate) fn name(&self) -> String {
        format!("{} of {}", self.subscription.name(), self.core.resource)
    }

    pub(crate) async fn next(&mut self) -> Option<Change<T>> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// The next change. `None` when the informer has stopped and all changes were returned, or when the subscription was
    /// removed.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Change<T>>> {
        // A change that the mailbox gets from here on wakes this task.
        self.subscription.register(context.waker());
        if self.subscription.is_removed() {
            return Poll::Ready(None);
        }
        // This is read before the mailbox: changes that are pending when the informer stops are still returned.
        let closed = self.subscription.is_closed();
        loop {
            // A long backlog must not keep other tasks from this thread. Subscriptions with the same backlog also stay
            // close together this way, so that a value that one of them decoded is still hot for the others.
            let turn = ready!(poll_proceed(context));
            let Some(notice) = self.subscription.take() else { break };
            turn.made_progress();
            if let Some(change) = self.change_of(notice) {
                return Poll::Ready(Some(change));
            }
        }
        if closed {
            return Poll::Ready(None);
        }
        self.poll_resync(context).map(Some)
    }

    fn change_of(&mut self, notice: Notice) -> Option<Change<T>> {
        match notice {
            Notice::Synced => Some(Change::Synced),
            Notice::Lagged(dropped) => {
                // The chain of changes has a gap here: the last delivered state of each key is unknown.
                self.undecodable.clear();
                Some(Change::Lagged(dropped))
            }
            Notice::Change { change, initial } => {
                self.continue_chain(change, initial).unwrap_or_else(|error| {
                    self.core.undecodable::<T>(&error);
                    Some(Change::Undecodable(error))
                })
            }
        }
    }

    /// Continues a key's chain from its last delivered state. That is not always the previous state of the cache: the chain
    /// leaves out undecodable versions, and versions that the filter rejects.
    fn continue_chain(&mut self, change: Raw, initial: bool) -> Result<Option<Change<T>>, DecodeError> {
        let origin = change.origin;
        // An object that enters the view by an update is no part of the initial list.
        let initial = initial && matches!(change.delta, Delta::Added(_));
        let (delta, item) = match change.delta {
            Delta::Added(new) => {
                let item = self.read(&new, None)?;
                (Delta::Added(new), item)
            }
            Delta::Updated { old, new } => {
                let delivered = self.last_delivered(new.key(), old);
                let item = self.read(&new, delivered.as_ref())?;
                let delta = match delivered {
                    Some(old) => Delta::Updated { old, new },
                    None => Delta::Added(new),
                };
                (delta, item)
            }
            Delta::Deleted { old, last } => return self.end(old, last, origin),
        };
        let change = match Filtered::of(delta, |old| self.wants_object(old), |_| self.wants(&item)) {
            None => return Ok(None),
            Some(Filtered::Added(_)) => Change::Added { new: item, initial, origin },
            Some(Filtered::Updated { old, .. }) => {
                Change::Updated { old: Previous::new(old, self.core.shelf.clone()), new: item, origin }
            }
            Some(Filtered::Left { last }) => self.deleted(self.item(&last)?, DeleteReason::LeftView, origin),
            Some(Filtered::Deleted { last, .. }) => {
                self.deleted(self.item(&last)?, deletion_noticed_by(origin), origin)
            }
        };
        Ok(Some(change))
    }

    /// Ends a key's chain.
    fn end(
        &mut self,
        old: Arc<Object>,
        last: Arc<Object>,
        origin: Origin,
    ) -> Result<Option<Change<T>>, DecodeError> {
        let delivered = self.last_delivered(last.key(), old);
        self.undecodable.remove(last.key());
        let Some(old) = delivered else { return Ok(None) };
        let delta = Delta::Deleted { old, last };
        let Some(Filtered::Deleted { old, last }) =
            Filtered::of(delta, |old| self.wants_object(old), |_| false)
        else {
            return Ok(None);
        };
        // If the last state does not decode, the last delivered one takes its place: the deletion must not be lost.
        let item = self.item(&last).or_else(|_| self.item(&old))?;
        let reason = match origin {
            Origin::Scope => DeleteReason::LeftView,
            _ if self.core.may_deselect() => DeleteReason::DeletedOrDeselected,
            origin => deletion_noticed_by(origin),
        };
        Ok(Some(self.deleted(item, reason, origin)))
    }

    fn deleted(&self, last: Item<T>, reason: DeleteReason, origin: Origin) -> Change<T> {
        let core = Arc::downgrade(&self.core);
        Change::Deleted(Deleted::new(last, reason, origin, core))
    }

    fn item(&self, object: &Arc<Object>) -> Result<Item<T>, DecodeError> {
        self.item_in(object, Room::Evict)
    }

    fn item_in(&self, object: &Arc<Object>, room: Room) -> Result<Item<T>, DecodeError> {
        Ok(Item::new(T::of::<Generated>(object, &self.core.shelf, room)?, object.clone()))
    }

    /// The last delivered state of a key whose previous state was `old`. `None` if no version of the key has decoded so
    /// far.
    fn last_delivered(&self, key: &ObjectKey, old: Arc<Object>) -> Option<Arc<Object>> {
        self.undecodable.get(key).map_or(Some(old), Clone::clone)
    }

    /// Decodes the newest version of a key. If that fails, `delivered` is remembered until a version decodes.
    fn read(&mut self, new: &Arc<Object>, delivered: Option<&Arc<Object>>) -> Result<Item<T>, DecodeError> {
        let view = self.item(new);
        if view.is_err() {
            self.undecodable.insert(new.key().clone(), delivered.cloned());
        } else if !self.undecodable.is_empty() {
            self.undecodable.remove(new.key());
        }
        view
    }

    fn wants_object(&self, object: &Arc<Object>) -> bool {
        self.filter.is_none() || self.item_in(object, Room::EvictIfHot).is_ok_and(|item| self.wants(&item))
    }

    /// Whether the filter matches. An object for which the filter panics does not match.
    fn wants(&self, object: &Item<T>) -> bool {
        let Some(filter) = &self.filter else { return true };
        catch_unwind(AssertUnwindSafe(|| filter(object))).unwrap_or_else(|_| {
            tracing::error!(subscription = self.name(), "the filter panicked: the object is left out");
            false
        })
    }

    /// The next object of a resync, if one is due and no change is pending.
    fn poll_resync(&mut self, context: &mut Context<'_>) -> Poll<Change<T>> {
        loop {
            let turn = ready!(poll_proceed(context));
            let Some(resync) = &mut self.resync else { return Poll::Pending };
            let Some(round) = &mut resync.round else {
                ready!(resync.timer.as_mut().poll(context));
                resync.timer.set(tokio::time::sleep(resync.period));
                let snapshot = self.core.cache.snapshot();
                let left: Vec<_> = snapshot.iter().cloned().collect();
                resync.round = Some(Round { revision: snapshot.revision(), left: left.into_iter() });
                continue;
            };
            // A re-list delivers changes; the round continues after it.
            if self.core.progress.is_listing() {
                return Poll::Pending;
            }
            // The changes that led to the snapshot must be delivered before its objects are repeated. A missing change
            // wakes this task.
            let delivered = self
                .subscription
                .with_mailbox(|mailbox| if mailbox.backlog() == 0 { mailbox.revision() } else { 0 });
            if delivered.is_none_or(|delivered| delivered < round.revision) {
                return Poll::Pending;
            }
            turn.made_progress();
            let Some(object) = round.left.next() else {
                resync.round = None;
                continue;
            };
            // A key that has changed since is left out: its changes are delivered as changes, and a resync never goes back
            // to an older state.
            let current = self.core.cache.get(object.key());
            if !current.is_some_and(|current| Arc::ptr_eq(&current, &object)) {
                continue;
            }
            let Ok(item) = self.item_in(&object, Room::IfFree) else { continue };
            if self.wants(&item) {
                return Poll::Ready(Change::Resynced(item));
            }
        }
    }
}

/// The reason of a deletion that is certain.
fn deletion_noticed_by(origin: Origin) -> DeleteReason {
    match origin {
        Origin::Watch => DeleteReason::Observed,
        Origin::List | Origin::Scope => DeleteReason::Missed,
    }
}

impl<T> Drop for Notifications<T> {
    fn drop(&mut self) {
        self.core.unsubscribe(&self.subscription);
    }
}
