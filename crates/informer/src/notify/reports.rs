//! The reports of an informer, as a stream.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_util::{FutureExt, StreamExt};
use informer_core::reflector::Report;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::coop::unconstrained;
use tokio_util::sync::ReusableBoxFuture;

/// A stream of reports, from its creation on: failures and other noteworthy events. It ends when the informer stops.
///
/// It causes no back-pressure: a reader that is more than 256 reports behind misses the oldest. [`Reports::missed`] counts
/// them.
///
/// ```no_run
/// # async fn example(pods: informer::Informer<k8s_openapi::api::core::v1::Pod>) {
/// let mut reports = pods.reports();
/// while let Some(report) = reports.recv().await {
///     if let informer::Report::Disconnected(cause) = report {
///         println!("disconnected: {cause}");
///     }
/// }
/// # }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct Reports {
    next: ReusableBoxFuture<'static, (Result<Report, RecvError>, Receiver<Report>)>,
    missed: u64,
}

impl Reports {
    pub(crate) fn new(receiver: Receiver<Report>) -> Self {
        Self { next: ReusableBoxFuture::new(receive(receiver)), missed: 0 }
    }

    /// The next report; `None` when the informer has stopped.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn recv(&mut self) -> Option<Report> {
        self.next().await
    }

    /// The next report, if one is pending.
    pub fn try_recv(&mut self) -> Option<Report> {
        unconstrained(self.next()).now_or_never().flatten()
    }

    /// The number of reports that this reader missed because it was too slow.
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

impl Stream for Reports {
    type Item = Report;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Report>> {
        loop {
            let (received, receiver) = ready!(self.next.poll(context));
            self.next.set(receive(receiver));
            match received {
                Ok(report) => return Poll::Ready(Some(report)),
                Err(RecvError::Lagged(missed)) => self.missed += missed,
                Err(RecvError::Closed) => return Poll::Ready(None),
            }
        }
    }
}

async fn receive(mut receiver: Receiver<Report>) -> (Result<Report, RecvError>, Receiver<Report>) {
    let received = receiver.recv().await;
    (received, receiver)
}

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reports").field("missed", &self.missed).finish_non_exhaustive()
    }
}
