//! Streaming lists (KEP-3157): a watch that begins with the whole state and marks the end of it.

use std::time::Duration;

use super::watching::Watching;
use super::{
    Cause, EventKind, Input, Next, Output, Reflector, Report, Request, State, Status, StoreOperation,
    WatchRequest,
};
use crate::Time;
use crate::wire::{ApiStatus, Bookmark};

/// A streaming list before the end of its initial events.
#[derive(Debug)]
pub(super) struct Streaming {
    /// Whether the most recent state was requested, rather than one not older than a version.
    consistent: bool,
    accepted_at: Option<Time>,
    received: usize,
    pub(super) trust_versions: bool,
    /// The time by which the initial events must end.
    end_by: Time,
    /// The time by which the next event must arrive.
    next_by: Time,
}

/// Initial events follow each other closely: a stream that pauses for longer will send no more of them.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// After this many broken streams in a row the reflector uses a LIST.
const ATTEMPTS: u32 = 3;

impl Streaming {
    pub(super) fn deadline(&self) -> Time {
        self.end_by.min(self.next_by)
    }
}

impl Reflector {
    pub(super) fn stream(&mut self, now: Time) {
        let resource_version = self.known.version_to_list();
        let trust_versions = !self.known.distrust_versions;
        // This is a list: it also finds what the extra list was to find.
        self.known.relist_at = None;
        let consistent = resource_version.is_unset();
        let timeout_seconds = self.watch_timeout();
        self.begin_replace(trust_versions);
        self.output(Output::Status(Status::Connecting));
        let request = WatchRequest { resource_version, timeout_seconds, initial_events: true };
        self.output(Output::Send(Request::Watch(request)));
        self.state = State::Streaming(Streaming {
            consistent,
            accepted_at: None,
            received: 0,
            trust_versions,
            end_by: now + self.known.config.initial_events_timeout,
            next_by: now + LONGEST_PAUSE,
        });
    }

    pub(super) fn streaming(&mut self, now: Time, input: Input) {
        let State::Streaming(streaming) = &mut self.state else { return };
        // Every input shows that the stream goes on, even an event that cannot be read.
        streaming.next_by = now + LONGEST_PAUSE;
        match input {
            Input::Accepted => {
                streaming.accepted_at = Some(now);
                self.accepted();
                self.output(Output::Status(Status::Syncing { received: 0 }));
            }
            Input::Event(EventKind::Added | EventKind::Modified, object) => {
                streaming.received += 1;
                self.store(StoreOperation::Stage(object));
            }
            Input::Event(EventKind::Deleted, object) => {
                self.store(StoreOperation::Unstage(object));
            }
            Input::Gone(_, key, version) => self.store(StoreOperation::UnstageKey(key, version)),
            Input::Unchanged(key) => {
                streaming.received += 1;
                self.store(StoreOperation::Keep(key));
            }
            Input::Unreadable { key, reason } => {
                if let Some(key) = key.clone() {
                    self.store(StoreOperation::Keep(key));
                }
                self.output(Output::Report(Report::Quarantined { key, reason }));
            }
            Input::Bookmark(bookmark) => self.initial_bookmark(now, bookmark),
            // This refusal comes within an accepted response, which may stay open.
            Input::ErrorEvent(status) => {
                self.output(Output::Cancel);
                self.stream_refused(now, status);
            }
            Input::Refused(status) => self.stream_refused(now, status),
            Input::Unreachable(reason) => self.stream_failed(now, Cause::Unreachable(reason)),
            Input::End => self.stream_ended(now, Cause::NoInitialEventsEnd),
            Input::Broken(reason) => self.stream_ended(now, Cause::Broken(reason)),
            Input::Undecodable(reason) => self.stream_ended(now, Cause::Undecodable(reason)),
            _ => {}
        }
    }

    /// A server that does not know streaming lists may have answered with a plain watch. Such a watch never marks the end of
    /// the initial state, although its events continue.
    pub(super) fn streaming_timed_out(&mut self, now: Time) {
        self.output(Output::Cancel);
        self.remember_refusal(now);
        self.fall_back(now, Cause::NoInitialEventsEnd);
    }

    fn initial_bookmark(&mut self, now: Time, bookmark: Bookmark) {
        let State::Streaming(streaming) = &self.state else { return };
        if !bookmark.initial_events_end {
            return;
        }
        let (consistent, trust_versions) = (streaming.consistent, streaming.trust_versions);
        let (accepted_at, events) = (streaming.accepted_at.unwrap_or(now), streaming.received);
        let listed = bookmark.resource_version;
        // The server went back. Equal versions were trusted while this list was staged, so the most recent state is staged once
        // more without that trust.
        if listed.is_older_than(&self.known.last_version) && (!consistent || trust_versions) {
            let seen = self.known.last_version.clone();
            self.store(StoreOperation::Discard);
            self.output(Output::Report(Report::Disconnected(Cause::WentBack { seen, listed })));
            self.known.distrust_versions = consistent;
            self.known.version_unavailable = true;
            return self.stream(now);
        }
        self.commit(listed.clone(), trust_versions);
        self.output(Output::Status(Status::Live { resource_version: listed }));
        let deadline = now + self.known.config.silence_limit;
        // The bookmark counts as an event: a stream that brought it does not count as short.
        self.state = State::Watching(Watching::already_accepted(accepted_at, events + 1, deadline));
    }

    fn stream_refused(&mut self, now: Time, status: ApiStatus) {
        let State::Streaming(streaming) = &self.state else { return };
        let versioned = !streaming.consistent;
        if versioned && (status.is_expired() || status.is_too_large_resource_version()) {
            self.store(StoreOperation::Discard);
            self.output(Output::Report(Report::Disconnected(Cause::VersionUnavailable(status))));
            self.known.version_unavailable = true;
            return self.stream(now);
        }
        let elsewhere_too = status.is_unauthorized() || status.is_forbidden() || status.is_not_found();
        // A LIST would be refused for the same reason, so there is nothing to fall back to.
        if status.is_too_many_requests() || elsewhere_too {
            self.store(StoreOperation::Discard);
            return self.refused(now, status, Next::Sync);
        }
        // A server with an internal error may support streaming lists once it works again.
        if status.code < 500 {
            self.remember_refusal(now);
        }
        self.fall_back(now, Cause::Refused(status));
    }

    /// The stream broke before its end: start over after the backoff, and after a few attempts use a LIST.
    fn stream_ended(&mut self, now: Time, cause: Cause) {
        // A stream that breaks once may have met a restart of the server. One that breaks each time will not do better.
        self.known.streaming_attempts += 1;
        if self.known.streaming_attempts >= ATTEMPTS {
            self.known.streaming_attempts = 0;
            self.remember_refusal(now);
            return self.fall_back(now, cause);
        }
        self.stream_failed(now, cause);
    }

    fn stream_failed(&mut self, now: Time, cause: Cause) {
        self.store(StoreOperation::Discard);
        self.retry(now, cause, None, Next::Sync);
    }

    fn fall_back(&mut self, now: Time, cause: Cause) {
        self.store(StoreOperation::Discard);
        self.output(Output::Report(Report::Disconnected(cause)));
        self.list(now);
    }

    fn remember_refusal(&mut self, now: Time) {
        self.known.streaming_refused_until = Some(now + self.known.config.streaming_list_retry);
    }
}
