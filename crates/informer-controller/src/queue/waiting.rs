//! The futures of those who wait for a queue.

use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::{Sleep, sleep_until};

use super::inner::Inner;
use super::shared::Found;
use super::taken::Taken;
use super::waiters::Ticket;

/// Waits for an item.
pub(super) struct Get<'q, K: Clone + Eq + Hash> {
    inner: &'q Arc<Inner<K>>,
    ticket: Option<Ticket>,
    /// Set while this worker waits for the time of the next delayed item.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<'q, K: Clone + Eq + Hash> Get<'q, K> {
    pub(super) fn new(inner: &'q Arc<Inner<K>>) -> Self {
        Self { inner, ticket: None, timer: None }
    }
}

impl<K: Clone + Eq + Hash> Future for Get<'_, K> {
    type Output = Option<Taken<K>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let (inner, shared) = (this.inner, &this.inner.shared);
        loop {
            let now = inner.now();
            let result = match shared.find(&mut this.ticket, now) {
                Some(found) => Ok(found),
                None => shared.find_or_sleep(&mut this.ticket, now, context.waker().clone()),
            };
            match result {
                Ok(Found::Item(taken)) => return Poll::Ready(Some(Taken::new(inner.clone(), taken))),
                Ok(Found::End) => return Poll::Ready(None),
                Err(None) => {
                    this.timer = None;
                    return Poll::Pending;
                }
                Err(Some(at)) => {
                    let moment = inner.moment(at);
                    let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(moment)));
                    if timer.deadline() != moment {
                        timer.as_mut().reset(moment);
                    }
                    if timer.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    this.timer = None;
                }
            }
        }
    }
}

impl<K: Clone + Eq + Hash> Drop for Get<'_, K> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.inner.shared.leave(ticket);
        }
    }
}

/// Waits for the end of a drain.
pub(super) struct Drained<'q, K: Clone + Eq + Hash> {
    inner: &'q Inner<K>,
    ticket: Option<u64>,
}

impl<'q, K: Clone + Eq + Hash> Drained<'q, K> {
    pub(super) fn new(inner: &'q Inner<K>) -> Self {
        Self { inner, ticket: None }
    }
}

impl<K: Clone + Eq + Hash> Future for Drained<'_, K> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waker = context.waker().clone();
        match self.inner.shared.drained_or_sleep(&mut self.ticket, waker) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

impl<K: Clone + Eq + Hash> Drop for Drained<'_, K> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.inner.shared.leave_drain(ticket);
        }
    }
}
