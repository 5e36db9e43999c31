//! The changes of an informer as a stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use informer_core::View;

use crate::Error;
use crate::change::Change;
use crate::feed::Feed;
use crate::informer::Informer;
use crate::subscribe::Subscribe;

/// A stream of changes: what is there, then [`Change::Synced`], then what happens. Keeps its informer alive.
///
/// When the informer stops, what is pending is still told, and then the stream ends.
/// Dropping it ends the subscription. `next` on it is cancel safe. Beside other subscriptions it is not ready now and then
/// although there is more: they have their turn, and it is woken after that.
#[must_use = "streams do nothing unless polled"]
pub struct Changes<T: View> {
    informer: Informer<T>,
    feed: Feed<T>,
}

impl<T: View> Changes<T> {
    pub(crate) fn subscribe(options: Subscribe<T>) -> Result<Self, Error> {
        let informer = options.informer.clone();
        Ok(Self { feed: Feed::subscribe(options)?, informer })
    }

    /// The informer whose changes these are.
    pub fn informer(&self) -> &Informer<T> {
        &self.informer
    }

    /// How many changes wait.
    pub fn backlog(&self) -> usize {
        self.feed.subscriber().with_mailbox(|mailbox| mailbox.backlog())
    }
}

impl<T: View> Stream for Changes<T> {
    type Item = Change<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Change<T>>> {
        self.feed.poll_next(context)
    }
}

impl<T: View> Unpin for Changes<T> {}
