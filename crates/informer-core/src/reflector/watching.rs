//! WATCH: where it resumes from, and how the reflector reacts to each way in which it ends.

use std::time::Duration;

use super::{
    Cause, EventKind, Input, Next, Output, Reflector, ReflectorConfig, Report, Request, State, Status,
    StoreOperation, WatchRequest,
};
use crate::wire::{ApiStatus, Bookmark};
use crate::{ResourceVersion, Time};

/// A running watch.
#[derive(Debug)]
pub(super) struct Watching {
    accepted_at: Option<Time>,
    /// Events and bookmarks so far.
    events: usize,
    /// Whether the watch began without a version, at a server whose lists have none. Its first events are then the existing
    /// objects, in no order of versions (W9).
    initial_state: bool,
    /// The time by which progress is due.
    deadline: Time,
}

/// A watch that ends sooner than this without an event was not served (client-go: `VeryShortWatchError`).
const SHORT_WATCH: Duration = Duration::from_secs(1);
/// A server that lacks the history for a watch reports that at once, though often after it has accepted the watch. After this
/// long without an error, the watch counts as resumed.
const CONFIRMED_AFTER: Duration = Duration::from_millis(250);
/// After this many short watches in a row the reflector lists, so that the cache stays current even if watches do not work.
const SHORT_WATCHES: u32 = 3;
/// If a watch expires again within this time, the list waits for the backoff.
const EXPIRES_OFTEN: Duration = Duration::from_secs(120);

impl Watching {
    pub(super) fn already_accepted(accepted_at: Time, events: usize, deadline: Time) -> Self {
        Self { accepted_at: Some(accepted_at), events, initial_state: false, deadline }
    }

    /// The time by which progress is due. Until the load is `confirmed`, it is the time at which the absence of an error
    /// confirms it.
    pub(super) fn deadline(&self, confirmed: bool) -> Time {
        match self.accepted_at {
            Some(accepted_at) if !confirmed => self.deadline.min(accepted_at + CONFIRMED_AFTER),
            _ => self.deadline,
        }
    }

    pub(super) fn is_accepted(&self) -> bool {
        self.accepted_at.is_some()
    }

    fn is_short(&self, now: Time) -> bool {
        self.accepted_at.is_none_or(|accepted_at| now.since(accepted_at) < SHORT_WATCH)
    }
}

/// Whether a refusal is temporary, regardless of the request.
pub(super) fn is_passing(status: &ApiStatus) -> bool {
    status.is_too_many_requests() || status.is_unauthorized() || status.code >= 500
}

impl Reflector {
    /// Watches from the last version.
    pub(super) fn watch(&mut self, now: Time) {
        let resource_version = self.known.last_version.clone();
        let initial_state = resource_version.is_unset_or_zero();
        let timeout_seconds = self.watch_timeout();
        let request = WatchRequest { resource_version, timeout_seconds, initial_events: false };
        self.output(Output::Send(Request::Watch(request)));
        let deadline = now + self.known.config.response_timeout;
        self.state = State::Watching(Watching { accepted_at: None, events: 0, initial_state, deadline });
    }

    /// The timeout is random, so that watches that began together do not end together.
    pub(super) fn watch_timeout(&mut self) -> u64 {
        let shortest =
            self.known.config.min_watch_timeout.max(ReflectorConfig::SHORTEST_WATCH_TIMEOUT).as_secs();
        self.known.random.u64(shortest..=shortest.saturating_mul(2))
    }

    pub(super) fn watching(&mut self, now: Time, input: Input) {
        let goes_on = matches!(
            input,
            Input::Event(..)
                | Input::Gone(..)
                | Input::Unchanged(_)
                | Input::Bookmark(_)
                | Input::Unreadable { .. }
        );
        if goes_on && !self.known.synced {
            self.confirm();
        }
        let State::Watching(watching) = &mut self.state else { return };
        watching.deadline = now + self.known.config.silence_limit;
        match input {
            Input::Accepted => {
                watching.accepted_at = Some(now);
                self.accepted();
                if self.known.synced {
                    self.live();
                }
            }
            Input::Event(kind, object) => {
                self.follow(kind, object.resource_version());
                self.store(match kind {
                    EventKind::Added | EventKind::Modified => StoreOperation::Upsert(object),
                    EventKind::Deleted => StoreOperation::Delete(object),
                });
            }
            Input::Gone(kind, key, version) => {
                self.follow(kind, &version);
                self.store(StoreOperation::DeleteKey(key, version));
            }
            // An event that repeats the cached version still counts as an event.
            Input::Unchanged(_) => watching.events += 1,
            Input::Bookmark(bookmark) => self.bookmark(bookmark),
            Input::Unreadable { key, reason } => {
                watching.events += 1;
                self.output(Output::Report(Report::Quarantined { key, reason }));
            }
            Input::ErrorEvent(status) => self.error_event(now, status),
            Input::Refused(status) => self.watch_refused(now, status),
            Input::Unreachable(reason) => self.retry(now, Cause::Unreachable(reason), None, Next::Watch),
            Input::End => self.watch_ended(now, Cause::Ended),
            Input::Broken(reason) => self.watch_ended(now, Cause::Broken(reason)),
            // Only a list can find out what was lost (W17). It waits for the backoff, because each event may be undecodable.
            Input::Undecodable(reason) => self.retry(now, Cause::Undecodable(reason), None, Next::Sync),
            _ => {}
        }
    }

    /// Counts an event, and moves the last version to that of the event.
    fn follow(&mut self, kind: EventKind, version: &ResourceVersion) {
        let State::Watching(watching) = &mut self.state else { return };
        watching.events += 1;
        watching.initial_state &= kind == EventKind::Added;
        if !watching.initial_state {
            self.known.advance(version);
        }
    }

    fn live(&mut self) {
        let resource_version = self.known.last_version.clone();
        self.output(Output::Status(Status::Live { resource_version }));
    }

    /// The server has confirmed the loaded objects.
    fn confirm(&mut self) {
        self.known.synced = true;
        self.store(StoreOperation::Confirm);
        self.live();
    }

    /// Neither an event nor a bookmark arrived: either the connection is dead, or the server has an older state than the
    /// watch.
    pub(super) fn watching_timed_out(&mut self, now: Time) {
        let State::Watching(watching) = &self.state else { return };
        let answered = watching.accepted_at.is_some();
        if answered && !self.known.synced {
            return self.confirm();
        }
        self.output(Output::Cancel);
        if answered {
            let limit = self.known.config.silence_limit;
            self.output(Output::Report(Report::Disconnected(Cause::Silent(limit))));
            self.probe(now);
        } else {
            let limit = self.known.config.response_timeout;
            self.retry(now, Cause::Silent(limit), None, Next::Watch);
        }
    }

    fn bookmark(&mut self, bookmark: Bookmark) {
        let State::Watching(watching) = &mut self.state else { return };
        watching.events += 1;
        watching.initial_state = false;
        self.known.advance(&bookmark.resource_version);
        self.store(StoreOperation::Bookmark(bookmark.resource_version));
    }

    fn watch_refused(&mut self, now: Time, status: ApiStatus) {
        if status.is_expired() {
            return self.watch_expired(now, status);
        }
        let passing = is_passing(&status);
        // The server has not reached this version yet, or never will. A list finds out which.
        let next = if passing && !status.is_too_large_resource_version() { Next::Watch } else { Next::Sync };
        self.refused(now, status, next);
    }

    fn error_event(&mut self, now: Time, status: ApiStatus) {
        self.output(Output::Cancel);
        if status.is_expired() {
            return self.watch_expired(now, status);
        }
        let asked = status.retry_after;
        let next = if status.is_too_many_requests() || self.retries_internal_error(now, &status) {
            Next::Watch
        } else {
            Next::Sync
        };
        self.retry(now, Cause::ErrorEvent(status), asked, next);
    }

    /// Whether an internal error is still within the time in which only the watch is retried (W7).
    fn retries_internal_error(&mut self, now: Time, status: &ApiStatus) -> bool {
        let limit = self.known.config.internal_error_retry;
        if !status.is_internal_error() || limit.is_zero() {
            return false;
        }
        let since = *self.known.internal_errors_since.get_or_insert(now);
        let within = now.since(since) <= limit;
        if !within {
            self.known.internal_errors_since = None;
        }
        within
    }

    /// The server no longer has the history since the last version. The reflector lists at that version or a newer one, at
    /// once unless watches expire often.
    fn watch_expired(&mut self, now: Time, status: ApiStatus) {
        let version = self.known.last_version.clone();
        let before = self.known.expired.replace((now, version.clone()));
        // The watch expired at the same version again, although a list was made: the server's lists do not advance.
        self.known.version_unavailable |= before.as_ref().is_some_and(|(_, expired)| *expired == version);
        if before.is_some_and(|(at, _)| now.since(at) < EXPIRES_OFTEN) {
            let asked = status.retry_after;
            return self.retry(now, Cause::VersionUnavailable(status), asked, Next::Sync);
        }
        self.output(Output::Report(Report::Disconnected(Cause::VersionUnavailable(status))));
        self.sync(now);
    }

    fn watch_ended(&mut self, now: Time, cause: Cause) {
        let State::Watching(watching) = &self.state else { return };
        // One event may arrive by chance. One event in each short watch does not mean that the watch is served.
        let served = watching.events > usize::from(self.known.short_watches > 0);
        if watching.is_short(now) && watching.events <= 1 {
            self.known.short_watches += 1;
            if !served {
                let next = if self.known.short_watches >= SHORT_WATCHES { Next::Sync } else { Next::Watch };
                if next == Next::Sync {
                    self.known.short_watches = 0;
                }
                // A broken watch keeps its own cause.
                let cause = if cause == Cause::Ended { Cause::ShortWatch } else { cause };
                return self.retry(now, cause, None, next);
            }
        } else {
            self.known.short_watches = 0;
            self.known.internal_errors_since = None;
        }
        self.output(Output::Report(Report::Disconnected(cause)));
        self.watch(now);
    }
}
