//! After operations were applied, notifies subscribers and observers.

use std::collections::VecDeque;
use std::time::Duration;

use crate::Time;
use crate::reflector::{self, Report, Status, Why};

use super::writer::{Applied, Outcome};
use super::{Command, Engine};

/// Outcomes whose changes are not in all mailboxes yet.
pub(super) struct Outbox {
    outcomes: VecDeque<Outcome>,
    /// How many changes go into mailboxes before other informers of the thread get their turn.
    slice: usize,
}

/// How many changes go into mailboxes before other informers of the thread get their turn, which takes about a millisecond. A
/// change counts once for each mailbox.
pub(super) const SLICE: usize = 4096;
/// At most one extra list per this time is made because objects differ between lists.
const DOUBT_PACE: Duration = Duration::from_secs(600);

impl Outbox {
    pub(super) fn of(slice: usize) -> Self {
        Self { outcomes: VecDeque::new(), slice }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outcomes.is_empty()
    }

    pub(super) fn extend(&mut self, outcomes: Vec<Outcome>) {
        self.outcomes.extend(outcomes);
    }
}

impl Outcome {
    pub(super) fn has_news(&self) -> bool {
        self.applied.is_some() || self.failed.is_some() || self.first_quarantined.is_some()
    }
}

impl Engine {
    pub(super) fn applied(&mut self, now: Time, outcome: Outcome) {
        if !outcome.has_news() {
            return;
        }
        self.outbox.outcomes.push_back(outcome);
        // Behind others it waits for its turn, so that changes keep their order.
        if self.outbox.outcomes.len() == 1 {
            self.dispatch_slice(now);
        }
    }

    /// Puts the next slice of changes into the mailboxes, and issues the commands of outcomes that are dispatched completely.
    pub(super) fn dispatch_slice(&mut self, now: Time) {
        // Each change goes into every mailbox, so the slice is divided by their number.
        let mut room = (self.outbox.slice / self.fanout.len().max(1)).max(1);
        let mut wakers = Vec::new();
        while let Some(outcome) = self.outbox.outcomes.front_mut() {
            // A change may be the last to hold its object, so each slice frees its own.
            let mut slice = Vec::with_capacity(room.min(outcome.changes.len()));
            slice.extend(outcome.changes.by_ref().take(room));
            wakers.extend(self.fanout.offer(outcome.revision, &slice));
            room -= slice.len();
            if !outcome.changes.is_empty() {
                break;
            }
            let Some(outcome) = self.outbox.outcomes.pop_front() else { break };
            if outcome.is_synced && !std::mem::replace(&mut self.is_synced, true) {
                wakers.extend(self.fanout.cache_synced());
                self.commands.push_back(Command::Synced);
            }
            self.announce(now, outcome);
        }
        self.command_wake(wakers);
    }

    fn announce(&mut self, now: Time, outcome: Outcome) {
        let Outcome { source, request, scope, applied, failed, first_quarantined, unsteady, .. } = outcome;
        if let Some(report) = failed {
            self.counters.unreadable.add(1);
            self.commands.push_back(Command::Report(scope.clone(), report));
        }
        self.commands.extend(first_quarantined.map(Command::Quarantined));
        if !unsteady.is_empty() {
            self.list_once_more(now, source);
        }
        let report = |key| Command::Report(scope.clone(), Report::Unsteady { key });
        self.commands.extend(unsteady.into_iter().map(report));
        let Some(applied) = applied else { return };
        if applied.is_change()
            && let Some(source) = self.scopes.position(source).and_then(|at| self.scopes.get_mut(at))
        {
            source.has_applied_change();
        }
        match &applied {
            Applied::SourceAdded => self.source_added(now, source, scope),
            Applied::SourceRemoved => {
                self.scopes.leaving.retain(|(id, _)| *id != source);
                self.commands.push_back(Command::ScopeRemoved(scope));
            }
            Applied::Listed(_) | Applied::Confirmed | Applied::ListRefused(_) => {
                self.counters.updated(source, now);
                self.content_applied(source);
            }
            Applied::Upserted(..) | Applied::Deleted(..) | Applied::Bookmark(_) => {
                self.counters.updated(source, now);
            }
            Applied::ListBegun { .. } => {}
        }
        self.commands.push_back(Command::Applied { source, request, applied });
    }

    /// Only another list can tell whether an object differs at every list or its schema has just changed twice. The pace
    /// keeps a server whose objects always differ from causing list after list.
    fn list_once_more(&mut self, now: Time, source: crate::SourceId) {
        let Some(source) = self.scopes.position(source).and_then(|at| self.scopes.get_mut(at)) else {
            return;
        };
        if source.doubted_at.is_none_or(|at| now.since(at) >= DOUBT_PACE) {
            source.doubted_at = Some(now);
            source.reflector.handle(now, reflector::Input::Relist(Why::Unsteady));
        }
    }

    /// The cache now has the content that makes a source live.
    fn content_applied(&mut self, source: crate::SourceId) {
        let Some(source) = self.scopes.position(source).and_then(|at| self.scopes.get_mut(at)) else {
            return;
        };
        source.has_applied_content();
        if source.is_status_due() && matches!(source.status, Status::Live { .. }) {
            self.commands.push_back(Command::SourceStatus(source.scope.clone(), source.status.clone()));
        }
    }

    pub(super) fn source_status(&mut self, at: usize, status: Status) {
        let Some(source) = self.scopes.get_mut(at) else { return };
        source.status = status;
        let ends_response =
            matches!(source.status, Status::Retrying { .. } | Status::Denied { .. } | Status::Stalled);
        if source.is_status_due() {
            self.commands.push_back(Command::SourceStatus(source.scope.clone(), source.status.clone()));
        }
        let not_found = match &source.status {
            Status::Denied { status } if status.is_not_found() => Some(status.clone()),
            _ => None,
        };
        // A response that ended in an error event may have further bytes.
        if ends_response {
            self.hang_up(at);
        }
        if let Some(status) = not_found {
            self.not_found(&status);
        }
    }

    pub(super) fn publish_status(&mut self) {
        // An engine without scopes waits for no list, so it is synced.
        let has_nothing = self.running.is_some() && self.scopes.is_empty() && self.queue.is_empty();
        if has_nothing && !std::mem::replace(&mut self.is_synced, true) {
            let wakers = self.fanout.cache_synced();
            self.command_wake(wakers);
            self.commands.push_back(Command::Synced);
        }
        if let Some(status) = self.whole_status()
            && status != self.status
        {
            self.status = status.clone();
            self.commands.push_back(Command::Status(status));
        }
        let is_listing = self.has_work() || self.scopes.iter().any(super::scope_feed::ScopeFeed::is_listing);
        if std::mem::replace(&mut self.is_listing, is_listing) != is_listing {
            self.commands.push_back(Command::Listing(is_listing));
            if !is_listing {
                let wakers = self.fanout.wakers();
                self.command_wake(wakers);
            }
        }
    }

    /// The status of the scope that most needs attention. For several scopes that are syncing it adds up their objects. An
    /// engine without scopes is live.
    fn whole_status(&self) -> Option<Status> {
        let due = |source: &super::scope_feed::ScopeFeed| match &source.status {
            Status::Live { .. } if !source.is_status_due() => Status::Syncing { received: self.cache.len() },
            status => status.clone(),
        };
        let statuses: Vec<_> = self.scopes.iter().map(due).collect();
        self.running.as_ref()?;
        let Some(worst) = statuses.iter().max_by_key(|status| rank(status)) else {
            let live = Status::Live { resource_version: crate::ResourceVersion::UNSET };
            return Some(if self.scopes.is_empty() { live } else { Status::Connecting });
        };
        Some(match worst {
            Status::Syncing { .. } => {
                let received = statuses.iter().map(|status| match status {
                    Status::Syncing { received } => *received,
                    _ => 0,
                });
                Status::Syncing { received: received.sum() }
            }
            other => other.clone(),
        })
    }
}

fn rank(status: &Status) -> u8 {
    match status {
        Status::NotStarted | Status::Stopped => 0,
        Status::Live { .. } => 1,
        Status::Syncing { .. } => 2,
        Status::Connecting => 3,
        Status::Retrying { .. } => 4,
        Status::Stalled => 4,
        Status::Denied { .. } => 5,
    }
}
