//! LIST: whether it is paged, at which version, and how the reflector reacts when that version is unavailable.

use super::{
    Cause, FirstList, Input, ListRequest, Next, Output, Reflector, Report, Request, State, Status,
    StoreOperation,
};
use crate::wire::{ApiStatus, ListMeta};
use crate::{ResourceVersion, Time};

/// A running list.
#[derive(Debug)]
pub(super) struct Listing {
    /// The first page's request: the version and limit of the whole list.
    first: ListRequest,
    /// Whether this is a page after the first.
    continued: bool,
    received: usize,
    pub(super) trust_versions: bool,
    /// The time by which progress is due.
    pub(super) deadline: Time,
}

/// The status reports progress every this many objects.
const STATUS_EVERY: usize = 1000;

impl Reflector {
    /// Begins a list. The initial list is consistent, or returns any state in pages. A re-list is not older than the last
    /// version seen.
    pub(super) fn list(&mut self, now: Time) {
        let known = &self.known;
        let first_ever = !known.synced && known.last_version.is_unset() && !known.version_unavailable;
        let any = first_ever && known.config.first_list == FirstList::Any;
        let resource_version = if any { ResourceVersion::new("0") } else { known.version_to_list() };
        // A limit bypasses the watch cache, so it is set only if the initial list has shown that there is no watch cache
        // (L6).
        let limit = (any || known.paginated).then_some(known.config.page_size);
        // With a limit, a version without `resourceVersionMatch` would mean exactly that version.
        let not_older_than = limit.is_some() && !resource_version.is_unset_or_zero();
        self.begin_list(now, ListRequest { resource_version, not_older_than, limit, continue_token: None });
    }

    /// Lists the most recent state, because the requested version is unavailable.
    fn list_most_recent(&mut self, now: Time) {
        self.known.version_unavailable = true;
        self.list(now);
    }

    fn begin_list(&mut self, now: Time, request: ListRequest) {
        let trust_versions = !self.known.distrust_versions;
        self.known.relist_at = None;
        self.begin_replace(trust_versions);
        self.output(Output::Status(Status::Connecting));
        self.output(Output::Send(Request::List(request.clone())));
        let deadline = now + self.known.config.response_timeout;
        self.state = State::Listing(Listing {
            first: request,
            continued: false,
            received: 0,
            trust_versions,
            deadline,
        });
    }

    pub(super) fn listing(&mut self, now: Time, input: Input) {
        let deadline = now + self.known.config.response_timeout;
        let State::Listing(listing) = &mut self.state else { return };
        listing.deadline = deadline;
        match input {
            Input::Accepted => {
                let received = listing.received;
                self.accepted();
                self.output(Output::Status(Status::Syncing { received }));
            }
            Input::ListStart(meta) => self.list_started(meta),
            Input::Item(object) => {
                self.item_received();
                self.store(StoreOperation::Stage(object));
            }
            Input::Unchanged(key) => {
                self.item_received();
                self.store(StoreOperation::Keep(key));
            }
            Input::Outside => self.item_received(),
            Input::Unreadable { key, reason } => {
                self.item_received();
                // The cached version is the newest decodable one.
                if let Some(key) = key.clone() {
                    self.store(StoreOperation::Keep(key));
                }
                self.output(Output::Report(Report::Quarantined { key, reason }));
            }
            Input::ListEnd(meta) => self.page_ended(now, meta),
            Input::Refused(status) => self.list_refused(now, status),
            Input::Unreachable(reason) => self.list_failed(now, Cause::Unreachable(reason)),
            Input::End => self.list_failed(now, Cause::Broken("the list is incomplete".to_owned())),
            Input::Broken(reason) => self.list_failed(now, Cause::Broken(reason)),
            Input::Undecodable(reason) => self.list_failed(now, Cause::Undecodable(reason)),
            _ => {}
        }
    }

    pub(super) fn listing_timed_out(&mut self, now: Time) {
        self.output(Output::Cancel);
        let limit = self.known.config.response_timeout;
        self.list_failed(now, Cause::Silent(limit));
    }

    fn item_received(&mut self) {
        let State::Listing(listing) = &mut self.state else { return };
        listing.received += 1;
        let received = listing.received;
        if received.is_multiple_of(STATUS_EVERY) {
            self.output(Output::Status(Status::Syncing { received }));
        }
    }

    /// The version of the list arrives before its items. If a consistent list is older than what was seen, the server went
    /// back, and an equal version may mean another state.
    fn list_started(&mut self, meta: ListMeta) {
        let older = meta.resource_version.is_older_than(&self.known.last_version);
        let State::Listing(listing) = &mut self.state else { return };
        let consistent = listing.first.resource_version.is_unset();
        if older && consistent && listing.trust_versions && listing.received == 0 {
            listing.trust_versions = false;
            self.begin_replace(false);
        }
    }

    fn page_ended(&mut self, now: Time, meta: ListMeta) {
        let deadline = now + self.known.config.response_timeout;
        let State::Listing(listing) = &mut self.state else { return };
        if let Some(token) = meta.continue_token {
            listing.continued = true;
            listing.deadline = deadline;
            let first_at_zero = listing.first.resource_version.is_unset_or_zero()
                && !listing.first.resource_version.is_unset();
            // The token of a continued list contains its version, and servers refuse a request with both.
            let next =
                ListRequest { limit: listing.first.limit, continue_token: Some(token), ..Default::default() };
            self.known.paginated |= first_at_zero;
            return self.output(Output::Send(Request::List(next)));
        }
        let consistent = listing.first.resource_version.is_unset();
        let trust_versions = listing.trust_versions;
        let listed = meta.resource_version;
        if listed.is_older_than(&self.known.last_version) && (!consistent || trust_versions) {
            return self.list_went_back(now, listed, consistent);
        }
        self.commit(listed, trust_versions);
        self.watch(now);
    }

    /// Never applies a list that is older than what was seen (L12). A consistent list decides: if it is older too, the server
    /// itself went back, and the list is repeated without trust in equal versions.
    fn list_went_back(&mut self, now: Time, listed: ResourceVersion, consistent: bool) {
        let seen = self.known.last_version.clone();
        self.store(StoreOperation::Discard);
        self.output(Output::Report(Report::Disconnected(Cause::WentBack { seen, listed })));
        self.known.distrust_versions = consistent;
        self.list_most_recent(now);
    }

    fn list_refused(&mut self, now: Time, status: ApiStatus) {
        let State::Listing(listing) = &self.state else { return };
        if status.is_expired() && listing.continued {
            // Servers expire the tokens of later pages. Request the whole list without pages, at least as new as the first
            // page (L4).
            let whole = ListRequest { limit: None, not_older_than: false, ..listing.first.clone() };
            self.store(StoreOperation::Discard);
            self.output(Output::Report(Report::Disconnected(Cause::VersionUnavailable(status))));
            return self.begin_list(now, whole);
        }
        let versioned = !listing.first.resource_version.is_unset();
        if versioned && (status.is_expired() || status.is_too_large_resource_version()) {
            self.store(StoreOperation::Discard);
            self.output(Output::Report(Report::Disconnected(Cause::VersionUnavailable(status))));
            return self.list_most_recent(now);
        }
        // The token of a page, or the version of the list, may be why the server refuses the request. A list with neither is
        // denied.
        let hopeless = status.is_unsupported() && !listing.continued;
        self.store(StoreOperation::Discard);
        if hopeless && versioned {
            self.output(Output::Report(Report::Disconnected(Cause::Refused(status))));
            return self.list_most_recent(now);
        }
        if hopeless {
            return self.deny(now, status);
        }
        let next = self.after_list_failed(now);
        self.refused(now, status, next);
    }

    fn list_failed(&mut self, now: Time, cause: Cause) {
        self.store(StoreOperation::Discard);
        let next = self.after_list_failed(now);
        self.retry(now, cause, None, next);
    }

    /// After a failed list that was only to compare contents, the watch resumes, and the list is tried again later.
    fn after_list_failed(&mut self, now: Time) -> Next {
        let Some(why) = self.known.relists.take() else { return Next::Sync };
        self.relist_soon(now, why);
        Next::Watch
    }
}
