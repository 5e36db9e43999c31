//! A delivery that runs.

use std::convert::Infallible;
use std::time::Duration;

use kubediff_delivery::{Delivery, DriveError, Driver, Policy, Record, Sink, Status};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::log::Memory;

/// Waits of milliseconds.
pub(crate) fn quick() -> Policy {
    Policy {
        batch: 2,
        first_wait: Duration::from_millis(2),
        longest_wait: Duration::from_millis(20),
        longest_asked_wait: Duration::from_millis(50),
        ..Policy::default()
    }
}

pub(crate) struct Running {
    pub(crate) stop: CancellationToken,
    pub(crate) status: watch::Receiver<Status>,
    pub(crate) resends: mpsc::Sender<Record>,
    task: JoinHandle<Result<(), DriveError<Infallible>>>,
}

impl Running {
    /// Delivers from where the log was delivered last.
    pub(crate) fn start(log: &Memory, sink: impl Sink + Send + 'static, policy: Policy) -> Self {
        let (status, told) = watch::channel(Status::default());
        let (resends, resent) = mpsc::channel(10);
        let position = log.settled.borrow().position;
        let driver = Driver {
            delivery: Delivery::new(policy, 1, position),
            log: log.clone(),
            sink,
            grace: Duration::from_secs(5),
            status,
            resends: resent,
        };
        let stop = CancellationToken::new();
        let task = tokio::spawn(driver.run(stop.clone()));
        Self { stop, status: told, resends, task }
    }

    /// Waits until the reason why the sink does not take records has these words.
    pub(crate) async fn trouble_with(&mut self, words: &str) -> String {
        let has = |status: &Status| status.trouble.as_ref().is_some_and(|trouble| trouble.contains(words));
        let told = self.status.wait_for(has).await.expect("a driver");
        told.trouble.as_deref().expect("a reason").to_owned()
    }

    /// Waits until the sink does not take records, and returns why.
    pub(crate) async fn trouble(&mut self) -> String {
        let told = self.status.wait_for(|status| status.trouble.is_some()).await.expect("a driver");
        told.trouble.as_deref().expect("a reason").to_owned()
    }

    /// Ends it as the end of the process would.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.expect("no panic").expect("no error");
    }
}
