//! The running requests of one informer: at most one per scope.

use std::collections::HashMap;

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;
use informer_core::engine::RequestId;

use crate::inner::exchange::{Exchange, ExchangeEvent};

#[derive(Default)]
pub(super) struct Exchanges {
    running: FuturesUnordered<Abortable<BoxFuture<'static, Step>>>,
    /// The handles of all exchanges, running or resting. A handle aborts a running one.
    handles: HashMap<RequestId, AbortHandle>,
    /// Exchanges that nothing reads at present. Flow control limits what the server sends meanwhile.
    resting: Vec<(RequestId, Exchange)>,
}

type Step = (RequestId, Exchange, ExchangeEvent);

impl Exchanges {
    pub(super) fn start(&mut self, id: RequestId, exchange: Exchange) {
        let (handle, registration) = AbortHandle::new_pair();
        self.handles.insert(id, handle);
        self.running.push(Abortable::new(step(id, exchange), registration));
    }

    /// Drops a request, which closes its connection or stream.
    pub(super) fn cancel(&mut self, id: RequestId) {
        self.resting.retain(|(resting, _)| *resting != id);
        if let Some(handle) = self.handles.remove(&id) {
            handle.abort();
        }
    }

    /// Resumes all resting exchanges.
    pub(super) fn go_on(&mut self) {
        for (id, exchange) in std::mem::take(&mut self.resting) {
            self.start(id, exchange);
        }
    }

    /// Waits for the next event of a running exchange. That exchange then rests until [`Exchanges::go_on`].
    ///
    /// # Cancel safety
    ///
    /// Safe: bytes that have arrived are kept in their exchange.
    pub(super) async fn next(&mut self) -> (RequestId, ExchangeEvent) {
        loop {
            match self.running.next().await {
                None => std::future::pending().await,
                // The exchange was cancelled, and is dropped by now.
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
