//! The sources that wake a controller: the changes of an informer, as keys of the objects to reconcile.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use informer::{
    Change, DeleteReason, Informer, Item, Object, ObjectKey, Origin, Previous, Registration, ResourceType,
    View, WhenFull,
};

use crate::inbox::Inbox;
use crate::owned::{Owned, controlling};
use crate::trigger::Trigger;

/// Whether a change matters.
type Predicate<U> = Arc<dyn Fn(&Change<U>) -> bool + Send + Sync>;

/// The objects of the initial list, and resyncs, wait behind changes: controller-runtime's priority for them.
const LOW: i32 = -100;
const NORMAL: i32 = 0;

/// An informer whose changes wake a controller, all of them or those that a predicate passes.
///
/// An `&Informer<U>` converts into it, with all changes.
///
/// ```no_run
/// # fn example(deployments: informer::Informer<k8s_openapi::api::apps::v1::Deployment>) {
/// use informer_controller::{Watched, changed};
///
/// let specs = Watched::of(&deployments).when(changed::generation);
/// # }
/// ```
pub struct Watched<U> {
    pub(crate) informer: Informer<U>,
    when: Option<Predicate<U>>,
    pub(crate) is_elsewhere: bool,
}

impl<U: View> Watched<U> {
    /// All changes of an informer.
    pub fn of(informer: &Informer<U>) -> Self {
        Self { informer: informer.clone(), when: None, is_elsewhere: false }
    }

    /// The objects are of another cluster than the one that the controller writes to: no reconciliation waits until they reflect its
    /// writes.
    ///
    /// ```no_run
    /// # fn example(east: informer::SharedInformerFactory, west: informer::SharedInformerFactory) {
    /// use informer_controller::{Controller, Watched};
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// // It writes to the east, as the west asks for. The object of the same key is woken in the east.
    /// let (wanted, there) = (west.informer::<ConfigMap>(), east.informer::<ConfigMap>());
    /// let controller = Controller::new("mirror", Watched::of(&wanted).elsewhere())
    ///     .watches(&there, |copy| [copy.key().clone()]);
    /// # }
    /// ```
    #[must_use]
    pub fn elsewhere(self) -> Self {
        Self { is_elsewhere: true, ..self }
    }

    /// Only changes that `predicate` passes, and those of earlier calls of this method. The module
    /// [`changed`](crate::changed) has the usual predicates.
    ///
    /// A predicate of owned objects sees the whole change: one that ignores a change of the owner reference leaves the former
    /// owner asleep.
    ///
    /// The predicate is called in the task of the subscription. If it panics, the change passes. So does the beginning of a
    /// deletion, whatever the predicate says: the object may wait for a finalizer of this controller.
    #[must_use]
    pub fn when(self, predicate: impl Fn(&Change<U>) -> bool + Send + Sync + 'static) -> Self {
        let when: Predicate<U> = match self.when {
            None => Arc::new(predicate),
            Some(first) => Arc::new(move |change| first(change) && predicate(change)),
        };
        Self { when: Some(when), ..self }
    }
}

impl<U: View> Watched<U> {
    /// Passes the key of every object that the predicate passes, as at the start: a predicate may stop resyncs.
    pub(crate) fn pass_all(&self, inbox: &Inbox, trigger: Trigger) {
        match &self.when {
            None => {
                let all = self.informer.cast::<Object>().lister().list();
                all.iter().for_each(|object| inbox.changed(object.key().clone(), trigger, LOW));
            }
            Some(when) => {
                for object in self.informer.lister().list() {
                    let key = object.key().clone();
                    let begun = Change::Added { new: object, initial: true, origin: Origin::List };
                    if passes(when, &begun) {
                        inbox.changed(key, trigger, LOW);
                    }
                }
            }
        }
    }
}

impl<U> Clone for Watched<U> {
    fn clone(&self) -> Self {
        Self { informer: self.informer.clone(), when: self.when.clone(), is_elsewhere: self.is_elsewhere }
    }
}

impl<U: View> From<&Informer<U>> for Watched<U> {
    fn from(informer: &Informer<U>) -> Self {
        Self::of(informer)
    }
}

impl<U> fmt::Debug for Watched<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.when.is_none();
        f.debug_struct("Watched").field("informer", &self.informer).field("all", &all).finish()
    }
}

/// A subscription that is so many changes behind coalesces further ones. Then an owner that an object had only in between is
/// not woken; the object itself, and its first and last owner, are.
const BACKLOG: usize = 10_000;

/// Subscribes to an informer and passes keys on to an inbox.
pub(crate) type Source =
    Box<dyn FnOnce(&str, Arc<Inbox>) -> Result<Registration, informer::Error> + Send + Sync>;

/// The objects of the informer are those to reconcile.
pub(crate) fn itself<T: View>(watched: Watched<T>) -> Source {
    source(watched, Keys::Itself)
}

/// The objects of the informer are owned by objects of the resource `owner`, which are to reconcile.
pub(crate) fn owned<U: View>(watched: Watched<U>, owner: Arc<ResourceType>) -> Source {
    source(watched, Keys::Controlling(owner))
}

/// A function returns the keys of the objects to reconcile.
pub(crate) fn mapped<U: View, I: IntoIterator<Item = ObjectKey>>(
    watched: Watched<U>,
    keys: impl Fn(&Item<U>) -> I + Send + Sync + 'static,
) -> Source {
    source(watched, Keys::Mapped(Box::new(move |item| keys(item).into_iter().collect())))
}

/// The keys to reconcile when an object changes.
enum Keys<U> {
    Itself,
    Controlling(Arc<ResourceType>),
    Mapped(Mapping<U>),
}

type Mapping<U> = Box<dyn Fn(&Item<U>) -> Vec<ObjectKey> + Send + Sync>;

/// Without a predicate or a mapping of the user's, no object is decoded as a `U` to find out its key.
fn source<U: View>(watched: Watched<U>, keys: Keys<U>) -> Source {
    match (watched.when, keys) {
        (None, Keys::Itself) => subscribing::<Object>(watched.informer.cast(), None, Keys::Itself),
        (None, Keys::Controlling(owner)) => {
            subscribing::<Object>(watched.informer.cast(), None, Keys::Controlling(owner))
        }
        (when, keys) => subscribing(watched.informer, when, keys),
    }
}

fn subscribing<U: View>(informer: Informer<U>, when: Option<Predicate<U>>, keys: Keys<U>) -> Source {
    Box::new(move |name, inbox| {
        let translate = Arc::new(Translate { when, keys });
        // A reconciliation that something else woke may have read a state that coalescing hides: an object that came and
        // went, or one that belonged to another owner for a while.
        let subscription = informer.subscribe().named(name).every_change(BACKLOG, WhenFull::Coalesce);
        let subscription = subscription.keep_cancelled();
        subscription.on_change(move |change| {
            translate.pass(&change, &inbox);
            std::future::ready(())
        })
    })
}

/// Turns changes into keys.
struct Translate<U> {
    when: Option<Predicate<U>>,
    keys: Keys<U>,
}

impl<U: View> Translate<U> {
    fn pass(&self, change: &Change<U>, inbox: &Inbox) {
        if !self.passes(change) {
            return;
        }
        let (trigger, priority) = match change {
            Change::Added { initial: true, .. } => (Trigger::Initial, LOW),
            Change::Resynced(_) => (Trigger::Resync, LOW),
            _ if matches!(self.keys, Keys::Itself) => (Trigger::Object, NORMAL),
            _ => (Trigger::Related, NORMAL),
        };
        let is_gone = match (&self.keys, change) {
            (Keys::Itself, Change::Deleted(deleted)) => inbox.is_ours(deleted.last().object()),
            _ => false,
        };
        for key in self.keys(change) {
            if is_gone { inbox.gone(key, trigger, priority) } else { inbox.changed(key, trigger, priority) }
        }
    }

    fn passes(&self, change: &Change<U>) -> bool {
        self.when.as_ref().is_none_or(|when| passes(when, change))
    }

    fn keys(&self, change: &Change<U>) -> Vec<ObjectKey> {
        catch_unwind(AssertUnwindSafe(|| self.keys.of(change))).unwrap_or_else(|_| {
            tracing::error!(key = ?change.key(), "a mapping panicked; its change wakes nothing");
            Vec::new()
        })
    }
}

fn passes<U>(when: &Predicate<U>, change: &Change<U>) -> bool {
    let matters = catch_unwind(AssertUnwindSafe(|| when(change))).unwrap_or_else(|_| {
        tracing::error!(key = ?change.key(), "a predicate panicked; its change passes");
        true
    });
    matters || begins_deletion(change)
}

/// Whether a change shows the beginning of a deletion. It always passes: the object may wait for this controller's finalizer.
fn begins_deletion<U>(change: &Change<U>) -> bool {
    let is_going = |object: &Object| object.decode::<Owned>().is_ok_and(|object| object.is_being_deleted());
    match change {
        Change::Added { new, .. } => is_going(new.object()),
        Change::Updated { old, new, .. } => is_going(new.object()) && !is_going(old.object()),
        _ => false,
    }
}

impl<U: View> Keys<U> {
    /// The keys that a change concerns: those of the state before it and of the state after it.
    fn of(&self, change: &Change<U>) -> Vec<ObjectKey> {
        match change {
            Change::Added { new, .. } | Change::Resynced(new) => self.of_item(new),
            Change::Updated { old, new, .. } => {
                let mut keys = self.of_item(new);
                for key in self.of_previous(old) {
                    if !keys.contains(&key) {
                        keys.push(key);
                    }
                }
                keys
            }
            // It was not deleted: the informer does not select its namespace any more.
            Change::Deleted(deleted) if deleted.reason() == DeleteReason::LeftView => Vec::new(),
            Change::Deleted(deleted) => self.of_item(deleted.last()),
            // Its reconciliation reports it; a related object of which nothing is known wakes nobody.
            Change::Undecodable(error) if matches!(self, Self::Itself) => vec![error.key().clone()],
            _ => Vec::new(),
        }
    }

    fn of_item(&self, item: &Item<U>) -> Vec<ObjectKey> {
        match self {
            Self::Itself => vec![item.key().clone()],
            Self::Controlling(owner) => controlling(owner, item.object()).into_iter().collect(),
            Self::Mapped(keys) => keys(item),
        }
    }

    fn of_previous(&self, previous: &Previous<U>) -> Vec<ObjectKey> {
        match self {
            Self::Itself => Vec::new(),
            Self::Controlling(owner) => controlling(owner, previous.object()).into_iter().collect(),
            Self::Mapped(keys) => previous.get().map(|item| keys(&item)).unwrap_or_default(),
        }
    }
}
