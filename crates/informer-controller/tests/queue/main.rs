//! The work queue as its workers see it. Contract group Q.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at a surprise, in its helpers too"
)]

mod drains;
mod numbers;
mod polled;
mod retries;
mod threads;
mod workers;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use informer_controller::queue::{Taken, WorkQueue};

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Whether a future is ready at once.
async fn now_or_never<R>(future: impl Future<Output = R>) -> Option<R> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// The item that is ready.
async fn take(queue: &WorkQueue<&'static str>) -> Option<Taken<&'static str>> {
    now_or_never(queue.get()).await.flatten()
}

/// The keys of all items that are ready, each done before the next one is taken.
async fn process_all(queue: &WorkQueue<&'static str>) -> Vec<&'static str> {
    let mut taken = Vec::new();
    while let Some(item) = take(queue).await {
        taken.push(*item);
    }
    taken
}

/// Counts how often a future is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Count {
    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Polls a future with a waker that counts.
fn poll_counted<F: Future + Unpin>(future: &mut F, count: &Arc<Count>) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(&Waker::from(count.clone())))
}
