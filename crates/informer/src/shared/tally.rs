//! Counts what one source asks for, and remembers when it last brought something.

use std::sync::Arc;

use informer_core::Time;
use informer_core::reflector::{Cause, Request, StoreOperation};

use crate::metrics::{Counters, Freshness};

pub(super) struct Tally {
    counters: Arc<Counters>,
    freshness: Arc<Freshness>,
    /// A list was sent.
    listed_before: bool,
    /// The next request is the first of a list.
    begins_list: bool,
    /// Why what ran before has ended.
    last_cause: Option<&'static str>,
}

impl Tally {
    /// `resumes`: what is there was listed by somebody before.
    pub(super) fn new(counters: Arc<Counters>, freshness: Arc<Freshness>, resumes: bool) -> Self {
        Self { counters, freshness, listed_before: resumes, begins_list: false, last_cause: None }
    }

    pub(super) fn sent(&mut self, request: &Request) {
        let counters = &self.counters;
        let is_list = std::mem::take(&mut self.begins_list);
        let counter = match request {
            Request::Watch(watch) if !watch.initial_events => return counters.watches.add(1),
            Request::List(list) if list.continue_token.is_some() => return counters.pages.add(1),
            Request::List(_) if !is_list => return counters.probes.add(1),
            Request::Watch(_) => &counters.streaming_lists,
            Request::List(_) => &counters.lists,
        };
        counter.add(1);
        if std::mem::replace(&mut self.listed_before, true)
            && let Some(cause) = self.last_cause
        {
            counters.relist(cause);
        }
    }

    pub(super) fn disconnected(&mut self, cause: &Cause) {
        self.last_cause = Some(cause.name());
    }

    pub(super) fn stored(&mut self, operation: &StoreOperation, now: Time) {
        match operation {
            StoreOperation::BeginReplace { .. } => self.begins_list = true,
            StoreOperation::Discard
            | StoreOperation::Keep(_)
            | StoreOperation::Stage(_)
            | StoreOperation::Unstage(_) => {}
            StoreOperation::Commit { .. }
            | StoreOperation::Upsert(_)
            | StoreOperation::Delete(_)
            | StoreOperation::Bookmark(_)
            | StoreOperation::Confirm => self.freshness.updated(now),
        }
    }
}
