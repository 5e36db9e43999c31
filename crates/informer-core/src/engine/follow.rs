//! The resource that the engine reads, as discovery and the server's schemas describe it, and the requests that are not sent
//! because their refusal is known.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Time;
use crate::reader::Expected;
use crate::reflector::{self, Request, StoreOperation, Why};
use crate::wire::ApiStatus;

use super::writer::Step;
use super::{Command, Engine};

/// The streaming lists that a server refused. All engines of a server share it, with one origin of time: if one of
/// them was refused, no other one asks.
#[derive(Debug, Default)]
pub struct StreamingRefusals(Mutex<HashMap<String, (Time, ApiStatus)>>);

/// The answer of discovery to [`Command::Discover`].
#[derive(Debug)]
pub enum Discovered {
    /// Discovery does not know the resource, or did not answer.
    Unknown,
    /// The resource is served as before.
    Unchanged,
    /// The resource is served as another version or kind.
    As {
        /// The kind of the objects.
        expected: Expected,
        /// Its group and version, as in `apps/v1`.
        api_version: String,
        /// The schema's fingerprint, as in [`Input::Schema`](super::Input::Schema); empty while it is unknown.
        schema: String,
        /// Whether this is another resource, for example a cluster-wide one in place of a namespaced one. All former objects
        /// are then deleted.
        is_other: bool,
    },
}

/// An engine whose resource was named, so that it may be served as another version.
#[derive(Default)]
pub(super) struct Follow {
    is_discovering: bool,
    /// The schema has changed, and discovery has not answered since.
    owes_discovery: bool,
    /// The running discovery began before the last change of the schema.
    is_outdated: bool,
    lost: Option<Lost>,
}

/// A resource that the server has not found.
struct Lost {
    status: ApiStatus,
    /// Whether a wake is owed once discovery finds the resource: it did not know it either, or a caller asked for a wake.
    owes_wake: bool,
}

impl StreamingRefusals {
    fn refused(&self, now: Time, api_version: &str, status: ApiStatus) {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert(api_version.to_owned(), (now, status));
    }

    fn within(&self, now: Time, limit: std::time::Duration, api_version: &str) -> Option<ApiStatus> {
        let refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, status) = refused.get(api_version)?;
        (now.since(*at) < limit).then(|| status.clone())
    }
}

impl Engine {
    /// The server reports a schema, or another one than before.
    pub(super) fn schema(&mut self, now: Time, schema: &str) {
        if *self.schema == *schema {
            return;
        }
        let former = std::mem::replace(&mut self.schema, Arc::from(schema));
        for at in 0..self.scopes.len() {
            self.relist_outdated(now, at);
        }
        // A resource that was deleted and returned at once was never missing to the engine, and may have another scope.
        if let Some(follow) = self.follow.as_mut().filter(|_| !former.is_empty()) {
            follow.owes_discovery = true;
            follow.is_outdated = follow.is_discovering;
            self.discover();
        }
    }

    /// Plans a list for a scope whose content was read with another schema than the present one.
    pub(super) fn relist_outdated(&mut self, now: Time, at: usize) {
        let Some(source) = self.scopes.get_mut(at) else { return };
        if !self.schema.is_empty() && source.listing_schema != self.schema {
            source.reflector.handle(now, reflector::Input::Relist(Why::SchemaChanged));
        }
    }

    /// The schema with which all content of the cache was read; empty if it is unknown, or not the same for all scopes.
    pub fn content_schema(&self) -> &str {
        let mut schemas = self.scopes.content_schemas();
        let first = schemas.next().unwrap_or_default();
        if schemas.all(|schema| schema == first) { first } else { "" }
    }

    /// The refusal of a request, if it is known before the request is sent.
    pub(super) fn foreseen(&mut self, now: Time, request: &Request) -> Option<ApiStatus> {
        let running = self.running.as_ref()?;
        if let Request::Watch(watch) = request
            && watch.initial_events
        {
            let limit = running.reflector.streaming_list_retry;
            let refused = running.streaming_refusals.within(now, limit, &running.api_version);
            if refused.is_some() {
                return refused;
            }
        }
        // While the resource is lost, nothing is requested: when it returns, its former path may belong to another
        // resource.
        let follow = self.follow.as_ref()?;
        let lost = follow.lost.as_ref().map(|lost| lost.status.clone());
        if lost.is_some() || follow.owes_discovery {
            self.discover();
        }
        lost
    }

    /// The server refused a streaming list.
    pub(super) fn streaming_refused(&self, now: Time, status: ApiStatus) {
        if let Some(running) = &self.running {
            running.streaming_refusals.refused(now, &running.api_version, status);
        }
    }

    /// The server answered 404.
    pub(super) fn not_found(&mut self, status: &ApiStatus) {
        if let Some(follow) = &mut self.follow {
            follow.lost.get_or_insert_with(|| Lost { status: status.clone(), owes_wake: false });
            self.discover();
        }
    }

    /// Sends the requests that wait for this. While user code is stuck, it is owed until it returns.
    pub(super) fn wake(&mut self, now: Time, input: &reflector::Input) {
        if matches!(input, reflector::Input::Wake) {
            self.owe_wake();
        }
        for at in 0..self.scopes.len() {
            if !self.is_stuck {
                self.reflect(now, at, input.clone());
            } else if let Some(source) = self.scopes.get_mut(at) {
                source.owes_wake = true;
            }
        }
    }

    /// A caller asks for a wake, which has no effect while the resource is lost.
    fn owe_wake(&mut self) {
        if let Some(lost) = self.follow.as_mut().and_then(|follow| follow.lost.as_mut()) {
            lost.owes_wake = true;
        }
    }

    fn discover(&mut self) {
        if let Some(follow) = &mut self.follow
            && !std::mem::replace(&mut follow.is_discovering, true)
        {
            self.commands.push_back(Command::Discover);
        }
    }

    pub(super) fn discovered(&mut self, now: Time, discovered: Discovered) {
        let Some(follow) = &mut self.follow else { return };
        follow.is_discovering = false;
        let is_outdated = std::mem::take(&mut follow.is_outdated);
        // After a failure, the next request asks again.
        follow.owes_discovery &= is_outdated || matches!(discovered, Discovered::Unknown);
        match discovered {
            Discovered::Unknown => {
                if let Some(lost) = &mut follow.lost {
                    lost.owes_wake = true;
                }
            }
            Discovered::Unchanged => {
                if follow.lost.take().is_some_and(|lost| lost.owes_wake) {
                    self.wake(now, &reflector::Input::Wake);
                }
            }
            Discovered::As { expected, api_version, schema, is_other } => {
                follow.lost = None;
                self.schema = Arc::from(schema);
                if let Some(running) = &mut self.running {
                    running.reader.expect(expected);
                    running.api_version = api_version;
                }
                if is_other { self.empty_scopes(now) } else { self.relist_all(now, Why::ServedAs) }
            }
        }
        if is_outdated {
            self.discover();
        }
    }

    /// Each scope lists; a scope that waits for a retry does so at once.
    fn relist_all(&mut self, now: Time, why: Why) {
        for at in 0..self.scopes.len() {
            if let Some(source) = self.scopes.get_mut(at) {
                source.reflector.handle(now, reflector::Input::Relist(why));
            }
        }
        self.wake(now, &reflector::Input::Wake);
    }

    /// An empty list deletes the objects of the former resource.
    fn empty_scopes(&mut self, now: Time) {
        for at in 0..self.scopes.len() {
            let Some(source) = self.scopes.get(at).filter(|source| !source.is_listing()) else { continue };
            let resource_version = source.reflector.last_version().clone();
            if !resource_version.is_unset() {
                let begin = StoreOperation::BeginReplace { trust_versions: true, expects_revisions: false };
                self.operation(now, at, Step::Store(begin));
                self.operation(now, at, Step::Store(StoreOperation::Commit { resource_version }));
            }
        }
    }
}
