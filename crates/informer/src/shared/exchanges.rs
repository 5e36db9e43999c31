//! The requests under way for one informer: at most one per scope.

use std::collections::HashMap;

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;
use informer_core::engine::RequestId;

use crate::exchange::{Exchange, ExchangeEvent};

#[derive(Default)]
pub(super) struct Exchanges {
    running: FuturesUnordered<Abortable<BoxFuture<'static, Step>>>,
    /// Those that run or rest, with what ends those that run.
    handles: HashMap<RequestId, AbortHandle>,
    /// Nobody reads these for now: the server sends no more than the connection's window.
    resting: Vec<(RequestId, Exchange)>,
}

type Step = (RequestId, Exchange, ExchangeEvent);

impl Exchanges {
    pub(super) fn start(&mut self, id: RequestId, exchange: Exchange) {
        let (handle, registration) = AbortHandle::new_pair();
        self.handles.insert(id, handle);
        self.running.push(Abortable::new(step(id, exchange), registration));
    }

    /// Drops a request, and with it its connection.
    pub(super) fn cancel(&mut self, id: RequestId) {
        self.resting.retain(|(resting, _)| *resting != id);
        if let Some(handle) = self.handles.remove(&id) {
            handle.abort();
        }
    }

    /// Lets those go on that rest.
    pub(super) fn go_on(&mut self) {
        for (id, exchange) in std::mem::take(&mut self.resting) {
            self.start(id, exchange);
        }
    }

    /// Waits for the next thing that one of them brings. It rests then, until [`Exchanges::go_on`].
    ///
    /// # Cancel safety
    ///
    /// Safe: what has arrived is kept in its exchange.
    pub(super) async fn next(&mut self) -> (RequestId, ExchangeEvent) {
        loop {
            match self.running.next().await {
                None => std::future::pending().await,
                // It was cancelled, and is dropped by now.
                Some(Err(_)) => {}
                Some(Ok((id, exchange, progress))) => {
                    if !self.handles.contains_key(&id) {
                        continue;
                    }
                    if matches!(progress, ExchangeEvent::Accepted { .. } | ExchangeEvent::Bytes(_)) {
                        self.resting.push((id, exchange));
                    } else {
                        self.handles.remove(&id);
                    }
                    return (id, progress);
                }
            }
        }
    }
}

fn step(id: RequestId, mut exchange: Exchange) -> BoxFuture<'static, Step> {
    Box::pin(async move {
        let progress = exchange.progress().await;
        (id, exchange, progress)
    })
}
