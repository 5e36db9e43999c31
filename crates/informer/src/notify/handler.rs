//! Handlers: user code that is called for each change.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use informer_core::{DecodeError, View};
use tokio::sync::watch;

use crate::Error;
use crate::inner::ending::Work;
use crate::inner::{Lifeline, Subscription};
use crate::notify::change::{Change, Previous};
use crate::notify::deleted::Deleted;
use crate::notify::notifications::{Notifications, Terms};
use crate::read::handle::Handle;
use crate::read::item::Item;

/// Reacts to changes. Each method does nothing by default.
///
/// One call runs at a time, and the calls for one object come in the server's order. A slow call delays only this handler.
/// A panic is logged, and the handler continues with the next change. The cache is never behind a notification, but may be
/// ahead of it.
///
/// When the informer stops, a running call completes and no other one begins: pending changes are dropped. Use
/// [`Changes`](crate::Changes) to drain them.
///
/// ```
/// use informer::{Deleted, Handler, Item, Previous};
/// use k8s_openapi::api::core::v1::Pod;
///
/// struct Log;
///
/// impl Handler<Pod> for Log {
///     async fn on_add(&mut self, pod: Item<Pod>, is_in_initial_list: bool) {
///         println!("{} exists, from the start: {is_in_initial_list}", pod.key());
///     }
///
///     async fn on_update(&mut self, old: Previous<Pod>, new: Item<Pod>) {
///         let changed = old.get().is_ok_and(|old| old.spec != new.spec);
///         println!("{} has another spec: {changed}", new.key());
///     }
///
///     async fn on_delete(&mut self, deleted: Deleted<Pod>) {
///         println!("{} is gone: {:?}", deleted.key(), deleted.reason());
///     }
/// }
/// ```
pub trait Handler<T: View>: Send + 'static {
    /// An object was added, or belongs to the initial list.
    fn on_add(&mut self, object: Item<T>, is_in_initial_list: bool) -> impl Future<Output = ()> + Send {
        let _ = (object, is_in_initial_list);
        std::future::ready(())
    }

    /// An object has another version.
    fn on_update(&mut self, old: Previous<T>, new: Item<T>) -> impl Future<Output = ()> + Send {
        let _ = (old, new);
        std::future::ready(())
    }

    /// An object is gone. [`Deleted::reason`] says whether it was deleted.
    fn on_delete(&mut self, deleted: Deleted<T>) -> impl Future<Output = ()> + Send {
        let _ = deleted;
        std::future::ready(())
    }

    /// The resync period has passed: called for each cached object.
    fn on_resync(&mut self, object: Item<T>) -> impl Future<Output = ()> + Send {
        let _ = object;
        std::future::ready(())
    }

    /// All objects of the initial list were handled.
    fn on_synced(&mut self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// The handler was too slow, and its full mailbox dropped this many changes ([`WhenFull::Drop`](crate::WhenFull)).
    fn on_lagged(&mut self, dropped: u64) -> impl Future<Output = ()> + Send {
        let _ = dropped;
        std::future::ready(())
    }

    /// A version of an object is undecodable and was left out.
    fn on_undecodable(&mut self, error: DecodeError) -> impl Future<Output = ()> + Send {
        let _ = error;
        std::future::ready(())
    }
}

/// The handle of a handler. Dropping it removes the handler; so does the end of the informer.
///
/// Keeps the informer alive.
///
/// ```no_run
/// # async fn example(pods: informer::Informer<k8s_openapi::api::core::v1::Pod>) -> Result<(), informer::Error> {
/// let printing = pods.on_change(async |change| println!("{:?}", change.key()))?;
/// // The existing pods were handled.
/// printing.synced().await;
/// // The last call has ended when this returns.
/// printing.remove().await;
/// # Ok(())
/// # }
/// ```
#[must_use = "the handler is removed when this is dropped: keep it in a variable, or call `detach()`"]
pub struct Registration {
    id: u64,
    subscription: Arc<Subscription>,
    informer: Arc<KeepAlive>,
    progress: watch::Receiver<HandlerProgress>,
    detached: bool,
}

/// Keeps the informer alive while the handler needs it. The registration and the handler's task share this: so a detached
/// handler keeps its informer. Removal empties it, so a removed handler keeps nothing running, even if its last call never
/// ends.
struct KeepAlive(Mutex<Option<Arc<Lifeline>>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HandlerProgress {
    synced: bool,
    ended: bool,
}

tokio::task_local! {
    /// The handler that the current task runs.
    static CURRENT: u64;
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl Registration {
    /// Whether the handler has handled the initial list, including objects on which it failed.
    pub fn is_synced(&self) -> bool {
        self.progress.borrow().synced
    }

    /// Waits until the handler has handled the initial list; `false` when it ended before that.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn synced(&self) -> bool {
        let mut progress = self.progress.clone();
        match progress.wait_for(|progress| progress.synced || progress.ended).await {
            Ok(progress) => progress.synced,
            Err(_) => false,
        }
    }

    /// Removes the handler and waits until its last call has ended. Inside the handler this does not wait, because that
    /// call cannot end before. If the handler's call waits for something, that must not wait for this removal.
    ///
    /// # Cancel safety
    ///
    /// Safe: the handler is removed all the same; only the wait ends.
    pub async fn remove(self) {
        self.leave();
        if CURRENT.try_with(|current| *current == self.id).unwrap_or(false) {
            return;
        }
        let mut progress = self.progress.clone();
        // An error means that the task has ended already.
        let _ = progress.wait_for(|progress| progress.ended).await;
    }

    /// Ends the subscription, also of a handler that is stuck in a call and never polls again.
    fn leave(&self) {
        self.subscription.remove();
        if let Some(lifeline) = self.informer.release() {
            lifeline.core().unsubscribe(&self.subscription);
        }
    }

    /// Leaves the handler in place, and the informer alive, until the informer is stopped.
    pub fn detach(mut self) {
        self.detached = true;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.detached {
            self.leave();
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("handler", &self.subscription.name())
            .field("synced", &self.is_synced())
            .finish_non_exhaustive()
    }
}

impl KeepAlive {
    fn release(&self) -> Option<Arc<Lifeline>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The target of a subscription's task for each change: a handler's methods, or a closure.
pub(crate) trait Dispatch<T>: Send + 'static {
    fn dispatch(&mut self, change: Change<T>) -> impl Future<Output = ()> + Send;
}

pub(crate) struct Methods<H>(pub(crate) H);

pub(crate) struct Closure<F>(pub(crate) F);

impl<T: View, H: Handler<T>> Dispatch<T> for Methods<H> {
    async fn dispatch(&mut self, change: Change<T>) {
        let handler = &mut self.0;
        match change {
            Change::Added { new, initial, .. } => handler.on_add(new, initial).await,
            Change::Updated { old, new, .. } => handler.on_update(old, new).await,
            Change::Deleted(deleted) => handler.on_delete(deleted).await,
            Change::Resynced(object) => handler.on_resync(object).await,
            Change::Synced => handler.on_synced().await,
            Change::Lagged(dropped) => handler.on_lagged(dropped).await,
            Change::Undecodable(error) => handler.on_undecodable(error).await,
        }
    }
}

impl<T, F, R> Dispatch<T> for Closure<F>
where
    F: FnMut(Change<T>) -> R + Send + 'static,
    R: Future<Output = ()> + Send,
{
    fn dispatch(&mut self, change: Change<T>) -> impl Future<Output = ()> + Send {
        (self.0)(change)
    }
}

pub(crate) fn register<T: View>(
    informer: &Handle<T>,
    terms: Terms<T>,
    handler: impl Dispatch<T>,
) -> Result<Registration, Error> {
    let runtime = tokio::runtime::Handle::try_current().map_err(|_| Error::no_runtime())?;
    let lifeline = informer.lifeline().clone();
    let life = &lifeline.core().life;
    // The place is taken before `subscribe` checks for a stop: so a stop waits for this task.
    let running = life.running(Work::HandlerCall);
    let notifications = Notifications::subscribe(lifeline.core(), terms)?;
    let subscription = notifications.subscription().clone();
    let (sender, progress) = watch::channel(HandlerProgress { synced: false, ended: false });
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let cut = life.cut_token();
    let informer = Arc::new(KeepAlive(Mutex::new(Some(lifeline))));
    let kept = informer.clone();
    let calls = CURRENT.scope(id, run(notifications, handler, sender));
    runtime.spawn(async move {
        // An error means that a stop has cut the calls off; no caller waits for that result.
        let _ = cut.run_until_cancelled_owned(calls).await;
        drop(kept.release());
        drop(running);
    });
    Ok(Registration { id, subscription, informer, progress, detached: false })
}

/// Calls the handler until it is removed or the informer stops.
async fn run<T: View>(
    notifications: Notifications<T>,
    handler: impl Dispatch<T>,
    progress: watch::Sender<HandlerProgress>,
) {
    // These are dropped in reverse order, also when the task is cut off: the handler is dropped before `ended` wakes the
    // waiters.
    let ended = Ended(progress);
    let mut notifications = notifications;
    let mut handler = handler;
    loop {
        // Decoding an object as the user's type may panic too.
        let change = match AssertUnwindSafe(notifications.next()).catch_unwind().await {
            Ok(Some(change)) => change,
            Ok(None) => break,
            Err(_) => {
                tracing::error!(
                    handler = notifications.name(),
                    "decoding an object panicked; the object is left out"
                );
                continue;
            }
        };
        if notifications.subscription().is_closed() {
            break;
        }
        let synced = matches!(change, Change::Synced);
        let meter = &notifications.subscription().meter;
        meter.begin();
        let panicked =
            AssertUnwindSafe(async { handler.dispatch(change).await }).catch_unwind().await.is_err();
        meter.end();
        if panicked {
            tracing::error!(
                handler = notifications.name(),
                "the handler panicked; the next change is handled"
            );
        }
        if synced {
            ended.0.send_modify(|progress| progress.synced = true);
        }
    }
}

struct Ended(watch::Sender<HandlerProgress>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.send_modify(|progress| progress.ended = true);
    }
}
