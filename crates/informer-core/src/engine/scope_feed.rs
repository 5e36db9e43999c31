//! One scope's list and watch: its reflector, and the response that is being received for it.

use std::sync::Arc;

use crate::reader::{Body, BodyOf, Reading, ResponseReader};
use crate::reflector::{Input, Reflector, Request, Status, StoreOperation, Trust};
use crate::wire::Limits;
use crate::{Scope, SourceId, Time};

use super::request::RequestId;
use super::writer::Step;

pub(super) struct ScopeFeed {
    pub(super) id: SourceId,
    pub(super) scope: Scope,
    pub(super) reflector: Reflector,
    /// The request that is running.
    pub(super) request: Option<RequestId>,
    last_request: RequestId,
    to: BodyOf,
    body: Option<Body>,
    /// Whether the response has ended. Part of it may not have been read yet.
    pub(super) has_ended: bool,
    /// Whether its reflector is to wake when the user's code returns: its response was dropped, or a wake came meanwhile.
    pub(super) owes_wake: bool,
    /// Whether the next request is the first of a list.
    pub(super) begins_list: bool,
    pub(super) refresh_credentials: bool,
    /// The schema with which its last list began, or its loaded content was read; empty while it is unknown.
    pub(super) listing_schema: Arc<str>,
    /// The same of the last list that is complete.
    listed_schema: Arc<str>,
    /// The last status of the reflector.
    pub(super) status: Status,
    /// Whether a list of a restored server is not in the cache yet.
    awaits_other_past: bool,
    /// The number of lists and confirmations that are not in the cache yet.
    unapplied_contents: usize,
    /// The number of changes that are not in the cache yet.
    unapplied_changes: usize,
    /// When a list last showed other content in objects that the list before had revised.
    pub(super) doubted_at: Option<Time>,
}

impl ScopeFeed {
    pub(super) fn new(id: SourceId, scope: Scope, reflector: Reflector, schema: Arc<str>) -> Self {
        Self {
            id,
            scope,
            reflector,
            request: None,
            last_request: RequestId(0),
            to: BodyOf::List,
            body: None,
            has_ended: false,
            owes_wake: false,
            begins_list: false,
            refresh_credentials: false,
            listing_schema: schema.clone(),
            listed_schema: schema,
            status: Status::Connecting,
            awaits_other_past: false,
            unapplied_contents: 0,
            unapplied_changes: 0,
            doubted_at: None,
        }
    }

    pub(super) fn asks(&mut self, id: RequestId, request: &Request) {
        self.request = Some(id);
        self.last_request = id;
        self.has_ended = false;
        self.to = match request {
            Request::List(_) => BodyOf::List,
            Request::Watch(_) => BodyOf::Watch,
        };
    }

    /// The request to attribute an operation to: the running one, or the last one.
    pub(super) fn request_or_last(&self) -> RequestId {
        self.request.unwrap_or(self.last_request)
    }

    pub(super) fn begin_answer(&mut self, protobuf: bool, limits: Limits) {
        self.body = Some(Body::new(self.to, protobuf, limits));
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if let Some(answer) = &mut self.body {
            answer.push(bytes);
        }
    }

    /// The next decoded part of the response; `None` if more bytes are needed.
    pub(super) fn next(&mut self, reader: &ResponseReader) -> Option<Reading> {
        let trust = trust(&self.reflector, self.awaits_other_past, self.unapplied_changes);
        reader.next(self.body.as_mut()?, trust)
    }

    pub(super) fn finish(&mut self, reader: &ResponseReader) -> Option<(Option<Reading>, Input)> {
        let trust = trust(&self.reflector, self.awaits_other_past, self.unapplied_changes);
        Some(reader.finish(&mut self.body.take()?, trust))
    }

    /// Drops the response. Returns the request if it was running.
    pub(super) fn hang_up(&mut self) -> Option<RequestId> {
        self.body = None;
        self.has_ended = false;
        self.request.take()
    }

    pub(super) fn receives(&self) -> bool {
        self.request.is_some()
    }

    pub(super) fn will_apply(&mut self, step: &Step, schema: &Arc<str>) {
        self.unapplied_contents += usize::from(is_content(step));
        self.unapplied_changes += usize::from(is_change(step));
        match step {
            Step::Store(StoreOperation::BeginReplace { trust_versions, .. }) => {
                self.begins_list = true;
                self.awaits_other_past |= !trust_versions;
                self.listing_schema = schema.clone();
            }
            Step::Store(StoreOperation::Commit { .. }) => self.listed_schema = self.listing_schema.clone(),
            _ => {}
        }
    }

    /// The schema with which the source's objects in the cache were read; empty while it is unknown.
    pub(super) fn content_schema(&self) -> &str {
        if self.unapplied_contents == 0 { &self.listed_schema } else { "" }
    }

    pub(super) fn has_applied_content(&mut self) {
        self.unapplied_contents = self.unapplied_contents.saturating_sub(1);
        self.awaits_other_past &= self.unapplied_contents > 0;
    }

    pub(super) fn has_applied_change(&mut self) {
        self.unapplied_changes = self.unapplied_changes.saturating_sub(1);
    }

    /// Whether its status may be published: a source is live only once its content is in the cache.
    pub(super) fn is_status_due(&self) -> bool {
        self.unapplied_contents == 0 || !matches!(self.status, Status::Live { .. })
    }

    pub(super) fn is_listing(&self) -> bool {
        matches!(self.status, Status::Connecting | Status::Syncing { .. }) || !self.is_status_due()
    }
}

/// Whether the step may change objects of the cache.
fn is_change(step: &Step) -> bool {
    let Step::Store(operation) = step else { return false };
    matches!(
        operation,
        StoreOperation::Commit { .. }
            | StoreOperation::Upsert(_)
            | StoreOperation::Delete(_)
            | StoreOperation::DeleteKey(..)
    )
}

/// The facts that an equal resourceVersion proves about an object. It proves nothing while the cache has the state from before a
/// restored backup, even if the events after the new list are being read already. It also does not prove that a listed
/// object may stay while changes to the cache are pending: by the time the list is applied, the cache may have another
/// version.
fn trust(reflector: &Reflector, awaits_other_past: bool, unapplied_changes: usize) -> Trust<'_> {
    match reflector.trusts_versions() {
        _ if awaits_other_past => Trust::Nothing,
        Trust::Content if unapplied_changes > 0 => Trust::Nothing,
        trust => trust,
    }
}

/// Whether the step makes a source synced.
fn is_content(step: &Step) -> bool {
    matches!(step, Step::Store(StoreOperation::Commit { .. } | StoreOperation::Confirm))
}
