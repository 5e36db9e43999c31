//! Handlers: user code that is called for each change.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use informer_core::{DecodeError, View};
use tokio::sync::watch;

use crate::Error;
use crate::change::{Change, Deleted, Previous};
use crate::feed::Feed;
use crate::shared::{Shared, Subscriber};
use crate::subscribe::Subscribe;

/// What to do about changes. Each method does nothing unless it is written.
///
/// One call at a time; per object in the server's order. A slow call delays only this handler, a panic is reported and
/// the next change is handled. The cache is never behind what a handler is told, but may be ahead of it.
///
/// When the informer stops, the call under way goes on to its end and no other one begins: what was pending is not told.
/// Who wants it takes [`Changes`](crate::Changes).
///
/// ```
/// use std::sync::Arc;
/// use informer::{Deleted, Handler, Previous};
/// use k8s_openapi::api::core::v1::Pod;
///
/// struct Log;
///
/// impl Handler<Pod> for Log {
///     async fn on_add(&mut self, pod: Arc<Pod>, is_in_initial_list: bool) {
///         println!("{:?} is there, from the start: {is_in_initial_list}", pod.metadata.name);
///     }
///
///     async fn on_update(&mut self, old: Previous<Pod>, new: Arc<Pod>) {
///         let changed = old.get().is_ok_and(|old| old.spec != new.spec);
///         println!("{:?} has another spec: {changed}", new.metadata.name);
///     }
///
///     async fn on_delete(&mut self, deleted: Deleted<Pod>) {
///         println!("{} is gone", deleted.key());
///     }
/// }
/// ```
pub trait Handler<T: View>: Send + 'static {
    /// An object is there that was not; from the first content, or since.
    fn on_add(&mut self, object: Arc<T>, is_in_initial_list: bool) -> impl Future<Output = ()> + Send {
        let _ = (object, is_in_initial_list);
        std::future::ready(())
    }

    /// An object has another version.
    fn on_update(&mut self, old: Previous<T>, new: Arc<T>) -> impl Future<Output = ()> + Send {
        let _ = (old, new);
        std::future::ready(())
    }

    /// An object is gone.
    fn on_delete(&mut self, deleted: Deleted<T>) -> impl Future<Output = ()> + Send {
        let _ = deleted;
        std::future::ready(())
    }

    /// The resync period has passed: each present object comes by.
    fn on_resync(&mut self, object: Arc<T>) -> impl Future<Output = ()> + Send {
        let _ = object;
        std::future::ready(())
    }

    /// The first content was handled.
    fn on_synced(&mut self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// So many changes were dropped, as chosen for a handler that is too slow.
    fn on_lagged(&mut self, dropped: u64) -> impl Future<Output = ()> + Send {
        let _ = dropped;
        std::future::ready(())
    }

    /// A version of an object cannot be read and was left out.
    fn on_undecodable(&mut self, error: DecodeError) -> impl Future<Output = ()> + Send {
        let _ = error;
        std::future::ready(())
    }
}

/// A handler that was added. Dropping this removes it; so does the end of the informer.
///
/// Keeps the informer alive.
#[must_use = "dropping this removes the handler"]
pub struct Registration {
    id: u64,
    subscriber: Arc<Subscriber>,
    informer: Arc<KeepAlive>,
    progress: watch::Receiver<HandlerProgress>,
    detached: bool,
}

/// The informer, for as long as the handler is wanted. The handler's task holds this too, for when it is detached; but a
/// handler that was removed keeps nothing running, even if its last call never ends.
struct KeepAlive(Mutex<Option<Arc<Shared>>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HandlerProgress {
    synced: bool,
    ended: bool,
}

tokio::task_local! {
    /// Which handler the current task runs.
    static CURRENT: u64;
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl Registration {
    /// Whether the handler has handled its first content, failures included.
    pub fn is_synced(&self) -> bool {
        self.progress.borrow().synced
    }

    /// Waits until the handler has handled its first content; `false` when it ended before that.
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

    /// Removes the handler and waits until its last call has ended. From inside of the handler it does not wait, since
    /// that call cannot end before. What the call itself waits for must not wait for this.
    ///
    /// # Cancel safety
    ///
    /// Safe: the handler is removed, only the waiting ends.
    pub async fn remove(self) {
        self.subscriber.remove();
        if CURRENT.try_with(|current| *current == self.id).unwrap_or(false) {
            return;
        }
        let mut progress = self.progress.clone();
        // An error means that the task is gone already.
        let _ = progress.wait_for(|progress| progress.ended).await;
    }

    /// Leaves the handler in place, and the informer alive, until the informer is stopped.
    pub fn detach(mut self) {
        self.detached = true;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if self.detached {
            return;
        }
        self.subscriber.remove();
        if let Some(shared) = self.informer.release() {
            shared.core().fanout.unsubscribe(&self.subscriber);
            // Where it is stuck in a call, nobody else does it.
            shared.core().release_decoded();
        }
    }
}

impl KeepAlive {
    fn release(&self) -> Option<Arc<Shared>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

pub(crate) fn register<T: View>(
    options: Subscribe<T>,
    handler: impl Handler<T>,
) -> Result<Registration, Error> {
    let runtime = tokio::runtime::Handle::try_current().map_err(|_| Error::no_runtime())?;
    let shared = options.informer.shared().clone();
    let life = &shared.core().life;
    let running = life.running();
    let feed = Feed::subscribe(options)?;
    let subscriber = feed.subscriber().clone();
    let (sender, progress) = watch::channel(HandlerProgress { synced: false, ended: false });
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let cut = life.cut_token();
    let informer = Arc::new(KeepAlive(Mutex::new(Some(shared))));
    let kept = informer.clone();
    let calls = CURRENT.scope(id, run(feed, handler, sender));
    runtime.spawn(async move {
        // Nobody is there to hear that it was cut off.
        let _ = cut.run_until_cancelled_owned(calls).await;
        drop(kept.release());
        drop(running);
    });
    Ok(Registration { id, subscriber, informer, progress, detached: false })
}

/// Calls the handler until it is removed or the informer stops.
async fn run<T: View>(feed: Feed<T>, handler: impl Handler<T>, progress: watch::Sender<HandlerProgress>) {
    // Dropped in the reverse order, also when this is cut off: whoever waits for the end finds the handler gone.
    let ended = Ended(progress);
    let mut feed = feed;
    let mut handler = handler;
    loop {
        // Reading an object as the user's type may panic too.
        let change = match AssertUnwindSafe(feed.next()).catch_unwind().await {
            Ok(Some(change)) => change,
            Ok(None) => break,
            Err(_) => {
                tracing::error!(handler = feed.name(), "reading an object panicked; it is left out");
                continue;
            }
        };
        if feed.subscriber().is_closed() {
            break;
        }
        let synced = matches!(change, Change::Synced);
        let meter = &feed.subscriber().meter;
        meter.begin();
        let panicked = AssertUnwindSafe(call(&mut handler, change)).catch_unwind().await.is_err();
        meter.end();
        if panicked {
            tracing::error!(handler = feed.name(), "the handler panicked; the next change is handled");
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

async fn call<T: View>(handler: &mut impl Handler<T>, change: Change<T>) {
    match change {
        Change::Added { object, initial, .. } => handler.on_add(object, initial).await,
        Change::Updated { old, new, .. } => handler.on_update(old, new).await,
        Change::Deleted(deleted) => handler.on_delete(deleted).await,
        Change::Resynced(object) => handler.on_resync(object).await,
        Change::Synced => handler.on_synced().await,
        Change::Lagged(dropped) => handler.on_lagged(dropped).await,
        Change::Undecodable(error) => handler.on_undecodable(error).await,
    }
}
