//! The seat of a controller that acts on a share of the objects: it may reconcile some hashes, from some moment on.
//!
//! The controller has the [`Seat`]; whoever divides the objects has the [`Host`] of it.

use informer::kube::Client;
use informer::share::{Ranges, Share};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::gate::Gate;

/// A message of a controller with a seat to its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// Its informers are synced; it waits for its turn.
    Synced,
    /// Nothing outside of these runs any more.
    Drained(Ranges),
}

/// The right to begin, with a client for writes that a gate watches over.
#[derive(Clone)]
pub(crate) struct Turn {
    pub(crate) client: Client,
    pub(crate) gate: Gate,
}

/// The controller's side.
#[derive(Clone)]
pub(crate) struct Seat {
    number: u64,
    pub(crate) share: Share,
    /// The part of the share that it may reconcile. It only shrinks.
    accept: watch::Receiver<Ranges>,
    turn: watch::Receiver<Option<Turn>>,
    stop: CancellationToken,
    news: mpsc::UnboundedSender<(u64, News)>,
}

/// The other side. When it is dropped, the controller never begins.
pub(crate) struct Host {
    accept: watch::Sender<Ranges>,
    turn: watch::Sender<Option<Turn>>,
    stop: CancellationToken,
}

impl Seat {
    /// A seat for a share. Its news carry its number.
    pub(crate) fn new(share: Share, number: u64, news: mpsc::UnboundedSender<(u64, News)>) -> (Self, Host) {
        let (accepting, accept) = watch::channel(share.ranges().clone());
        let (giving, turn) = watch::channel(None);
        let stop = CancellationToken::new();
        let host = Host { accept: accepting, turn: giving, stop: stop.clone() };
        (Self { number, share, accept, turn, stop, news }, host)
    }

    /// The ranges that it may reconcile now.
    pub(crate) fn accepted(&self) -> Ranges {
        self.accept.borrow().clone()
    }

    /// Resolves when that has shrunk.
    pub(crate) async fn shrunk(&mut self) {
        if self.accept.changed().await.is_err() {
            std::future::pending().await
        }
    }

    pub(crate) fn tell(&self, news: News) {
        // A host that no longer listens is about to drop this controller.
        let _ = self.news.send((self.number, news));
    }

    /// Says that it is ready, and waits for its turn.
    pub(crate) async fn turn(&self) -> Turn {
        self.tell(News::Synced);
        let mut turn = self.turn.clone();
        let given = turn.wait_for(Option::is_some).await.ok().and_then(|turn| turn.clone());
        match given.filter(|turn| turn.gate.is_open()) {
            Some(turn) => turn,
            // It is over for this seat.
            None => std::future::pending().await,
        }
    }

    /// Resolves when the controller is to end.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        self.stop.clone().cancelled_owned()
    }
}

impl Host {
    /// The controller begins.
    pub(crate) fn give(&self, turn: Turn) {
        self.turn.send_replace(Some(turn));
    }

    /// The controller reconciles nothing outside of these any more. Returns whether that is news.
    pub(crate) fn shrink(&self, accept: &Ranges) {
        self.accept.send_if_modified(|current| {
            let is_news = current != accept;
            current.clone_from(accept);
            is_news
        });
    }

    /// The controller lets what runs end, and ends.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }
}
