//! The tasks that run at present, for status questions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use informer::metrics::FactoryMetrics;
use kubediff_delivery::Status;
use kubediff_history::Location;
use tokio::sync::watch;

use super::audit::Counts;
use super::memory::Memory;
use crate::follow::{Inbox, Standing};
use crate::web::Answered;
use crate::{Secrets, Session};

/// A process that stands by.
pub(super) struct Waits {
    pub(super) standing: watch::Receiver<Standing>,
    pub(super) informers: Box<dyn Fn() -> FactoryMetrics + Send + Sync>,
    /// The process that records.
    pub(super) of: watch::Receiver<String>,
    /// It keeps what that one may not have recorded.
    pub(super) inbox: Arc<Inbox>,
}

impl Waits {
    /// How many changes it keeps, and how many resources it would list again: unknown before it knows what the server has.
    pub(super) fn shadow(&self) -> (usize, Option<usize>) {
        let (kept, torn) = self.inbox.shadow();
        (kept, self.standing.borrow().listing().map(|listing| torn + listing))
    }
}

/// The tasks that run at present.
pub(super) struct Current {
    pub(super) standing: watch::Receiver<Standing>,
    /// The metrics of the informers.
    pub(super) informers: Box<dyn Fn() -> FactoryMetrics + Send + Sync>,
    pub(super) session: Arc<Mutex<Session>>,
    pub(super) secrets: Secrets,
    /// The number of the newest record.
    pub(super) newest: watch::Receiver<u64>,
    /// The records up to this number have their stories.
    pub(super) decided: watch::Receiver<u64>,
    /// Why the history cannot be written.
    pub(super) trouble: watch::Receiver<Option<String>>,
    pub(super) memory: watch::Receiver<Memory>,
    pub(super) location: Location,
    pub(super) sinks: BTreeMap<String, watch::Receiver<Status>>,
    /// What became of audit events, where some are taken.
    pub(super) audit: Option<watch::Receiver<Counts>>,
    /// The answers of the page, where there is one.
    pub(super) page: Option<Answered>,
}
