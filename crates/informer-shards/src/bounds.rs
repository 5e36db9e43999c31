//! The bounds of a controller: the hashes that it may reconcile now. They only shrink; another share needs another controller.

use std::sync::Arc;
use std::time::Duration;

use informer::share::{Ranges, Share, ShareBy, hash};
use informer::{Object, View};
use informer_controller::{Context, Failure, Outcome, Reconcile, Writer};
use tokio::sync::{mpsc, watch};

/// A message of a controller to its member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// Its informers are synced; it waits for its turn.
    Synced,
    /// Nothing outside of these runs any more.
    Drained(Ranges),
}

/// Sends the news of one controller, with its number.
#[derive(Clone)]
pub(crate) struct Reporter {
    pub(crate) number: u64,
    pub(crate) news: mpsc::UnboundedSender<(u64, News)>,
}

impl Reporter {
    pub(crate) fn tell(&self, news: News) {
        // A member that no longer listens is about to drop this controller.
        let _ = self.news.send((self.number, news));
    }
}

/// The bounds of one controller.
pub(crate) struct Bounds {
    share: Share,
    state: watch::Sender<State>,
    reporter: Reporter,
}

struct State {
    /// The hashes that may be reconciled.
    accept: Ranges,
    /// The hashes that are being reconciled; `None` for an object that is gone.
    running: Vec<Option<u64>>,
    /// Nothing begins any more.
    is_closed: bool,
    /// Whether the end of what runs outside is to be reported.
    draining: bool,
}

impl Bounds {
    /// Bounds that are the whole share.
    pub(crate) fn new(share: Share, reporter: Reporter) -> Self {
        let state =
            State { accept: share.ranges().clone(), running: Vec::new(), is_closed: false, draining: false };
        Self { share, state: watch::Sender::new(state), reporter }
    }

    /// Nothing outside of these begins any more.
    pub(crate) fn shrink(&self, accept: &Ranges) {
        self.state.send_if_modified(|state| {
            let is_news = state.accept != *accept;
            state.draining |= is_news;
            state.accept.clone_from(accept);
            self.report(state);
            is_news
        });
    }

    /// Nothing begins any more.
    pub(crate) fn close(&self) {
        self.state.send_modify(|state| state.is_closed = true);
    }

    /// Resolves when nothing runs.
    pub(crate) async fn ended(&self) {
        // The sender is this.
        let _ = self.state.subscribe().wait_for(|state| state.running.is_empty()).await;
    }

    /// Reports once that nothing outside of the bounds runs any more.
    fn report(&self, state: &mut State) {
        let is_drained = state.running.iter().flatten().all(|hash| state.accept.contains(*hash));
        if state.draining && is_drained {
            state.draining = false;
            self.reporter.tell(News::Drained(state.accept.clone()));
        }
    }

    /// The hash by which a key belongs to the share. By its uid, an object that is gone has none.
    fn hash<T: View>(&self, context: &Context<T>) -> Option<u64> {
        match self.share.by() {
            ShareBy::Namespace => Some(hash(context.key().namespace().unwrap_or_default())),
            ShareBy::Uid | ShareBy::ControllerUid => {
                self.share.hash_of(context.object()?.object()).ok().flatten()
            }
        }
    }

    /// Whether an object, which may be gone, is inside of the bounds.
    pub(crate) fn has(&self, object: &Object) -> bool {
        let hash = self.share.hash_of(object).ok().flatten();
        hash.is_some_and(|hash| self.state.borrow().accept.contains(hash))
    }

    /// Begins a reconciliation, unless it is outside of the bounds. A key without a hash belongs to the process that saw its
    /// object go.
    fn begin<T: View>(self: &Arc<Self>, context: &Context<T>) -> Option<Running> {
        let hash = self.hash(context);
        let mut begins = false;
        self.state.send_if_modified(|state| {
            let is_ours = hash.map_or(context.triggers().saw_deletion(), |hash| state.accept.contains(hash));
            begins = is_ours && !state.is_closed;
            if begins {
                state.running.push(hash);
            }
            false
        });
        let (bounds, writer) = (self.clone(), context.writer().clone());
        begins.then_some(Running { bounds, hash, writer })
    }
}

/// A reconciliation that runs, until it is dropped.
struct Running {
    bounds: Arc<Bounds>,
    hash: Option<u64>,
    writer: Writer,
}

impl Running {
    /// Resolves when this has been outside of the bounds for so long.
    async fn overtime(&self, grace: Duration) {
        let Some(hash) = self.hash else { return std::future::pending().await };
        let mut states = self.bounds.state.subscribe();
        if states.wait_for(|state| !state.accept.contains(hash)).await.is_ok() {
            tokio::time::sleep(grace).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A task that the reconciler has left behind writes nothing any more.
        self.writer.close();
        self.bounds.state.send_if_modified(|state| {
            if let Some(at) = state.running.iter().position(|running| *running == self.hash) {
                state.running.swap_remove(at);
            }
            self.bounds.report(state);
            state.running.is_empty()
        });
    }
}

/// A reconciler within bounds. A key outside belongs to another member, which reconciles all that it gets.
pub(crate) struct Bounded<R> {
    pub(crate) bounds: Arc<Bounds>,
    /// How long a reconciliation that is outside now may take to end.
    pub(crate) grace: Duration,
    pub(crate) reconciler: R,
}

impl<T: View, R: Reconcile<T>> Reconcile<T> for Bounded<R> {
    async fn reconcile(&self, context: Context<T>) -> Result<Outcome, Failure> {
        let Some(running) = self.bounds.begin(&context) else { return Ok(Outcome::Done) };
        let key = context.key().clone();
        tokio::select! {
            biased;
            result = self.reconciler.reconcile(context) => result,
            () = running.overtime(self.grace) => {
                tracing::warn!(%key, "a reconciliation did not end in time and is dropped");
                Ok(Outcome::Done)
            }
        }
    }
}
