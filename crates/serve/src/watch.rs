//! Watches: the events of a collection, as they happen.

mod bookmark;
mod frames;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;
use std::vec;

use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_ENCODING, HeaderValue, VARY};
use http::{Response, StatusCode};
use tokio::time::{Instant, sleep_until};

use crate::fresh::until_fresh;
use crate::negotiate::{Encoding, Format};
use crate::parameters::{Parameters, version_error};
use crate::representation::Representation;
use crate::selector::Selection;
use crate::{
    Body, Collection, CollectionError, Event, Events, Object, Objects, Range, Reason, Resource,
    ResourceRequest, ServeOptions, Status, answer, discovery, gzip, protobuf,
};

use bookmark::Bookmark;
use frames::Frames;

/// The approximate size of a chunk if many events are pending.
const CHUNK: usize = 64 * 1024;

/// How long before its end a watch gets its last bookmark.
const BEFORE_THE_END: Duration = Duration::from_secs(2);

/// Answers a watch. Refusals after the parameters were parsed are sent as events, as the real server does.
pub(crate) async fn watch(
    resource: &Resource,
    collection: &dyn Collection,
    request: &ResourceRequest,
    parameters: Parameters,
    format: Format,
    gzip: bool,
    options: &ServeOptions,
) -> Result<Response<Body>, Status> {
    let version = parameters.version().map_err(version_error)?;
    let format = format.with_rows(&request.query)?;
    let now = Instant::now();
    // Go's 64-bit nanoseconds, which wrap.
    let lasting = match parameters.timeout_seconds.map(|seconds| seconds.wrapping_mul(1_000_000_000)) {
        Some(nanos) if nanos != 0 => Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)),
        _ => options.watch_timeout.mul_f64(1.0 + by_chance()),
    };
    let streaming_list = parameters.initial_events == Some(true);
    let compressed = gzip && options.gzip_watch_members && streaming_list && parameters.bookmarks;
    let bookmark = Bookmark::new(resource);
    let unfit = matches!(format.representation, Representation::Metadata { list: true, .. });
    let content_type = match &format.encoding {
        Encoding::Json => "application/json",
        Encoding::Protobuf(_) => protobuf::STREAM,
    };
    let start = match start(collection, request, &parameters, version, options).await {
        _ if lasting.is_zero() => Err(Status::new(Reason::InternalError, "context deadline exceeded")),
        // Events are no lists: the real server fails at the first one, silently.
        Ok(start) if unfit => Ok(Start { initial: None, events: None, ..start }),
        start => start,
    };
    let start = start.unwrap_or_else(Start::refused);
    let watching = Watching {
        frames: Frames::new(resource, format, bookmark, collection.now()),
        scope: Scope {
            namespace: request.namespace.as_deref().map(Box::from),
            selection: parameters.selection,
        },
        initial: start.initial,
        first: Vec::new().into_iter(),
        initial_end: (streaming_list && parameters.bookmarks && start.events.is_some())
            .then_some(start.after),
        refusal: start.refusal,
        after: start.after,
        events: start.events,
        batch: Vec::new().into_iter(),
        end: now + lasting,
        bookmarks: parameters.bookmarks.then(|| Bookmarks {
            period: options.bookmark_period,
            next: now + first_bookmark(options.bookmark_period, lasting),
        }),
    };
    let chunks = stream::unfold(watching, move |mut watching| async move {
        let chunk = watching.next().await?;
        let chunk = if compressed { gzip::member(&chunk) } else { Bytes::from(chunk) };
        Some((Ok(chunk), watching))
    });
    let mut response = answer::answer(StatusCode::OK, content_type, answer::streamed(chunks));
    if compressed {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    Ok(response)
}

/// A short watch has no last bookmark.
fn first_bookmark(period: Duration, lasting: Duration) -> Duration {
    lasting.checked_sub(BEFORE_THE_END).filter(|last| !last.is_zero()).map_or(period, |last| last.min(period))
}

/// A random number from 0 to 1, so that watches that began together do not end together. Hashers are seeded randomly.
fn by_chance() -> f64 {
    let hash = RandomState::new().hash_one(());
    f64::from(u16::try_from(hash & 0xffff).unwrap_or(0)) / 65536.0
}

/// Where a watch begins.
struct Start {
    /// The initial objects, sent as ADDED events.
    initial: Option<Box<dyn Objects>>,
    /// Only events after this revision are sent.
    after: u64,
    events: Option<Box<dyn Events>>,
    refusal: Option<Status>,
}

impl Start {
    fn refused(status: Status) -> Self {
        Self { initial: None, after: 0, events: None, refusal: Some(status) }
    }
}

async fn start(
    collection: &dyn Collection,
    request: &ResourceRequest,
    parameters: &Parameters,
    version: u64,
    options: &ServeOptions,
) -> Result<Start, Status> {
    let refused = |error| match error {
        CollectionError::Expired { oldest } => Status::expired(version, oldest),
        CollectionError::Gone => discovery::not_here(),
        CollectionError::Failed(status) => status,
    };
    let whole = match parameters.initial_events {
        Some(whole) => whole,
        None => version == 0,
    };
    if parameters.initial_events.is_some() {
        until_fresh(collection, version, options.fresh_timeout).await?;
    }
    let (initial, after) = if whole {
        let range = Range { namespace: request.namespace.as_deref().map(Box::from), after: None };
        let listing = collection.list(&range, None).await.map_err(refused)?;
        (Some(listing.objects), listing.revision)
    } else if version == 0 {
        (None, collection.revision())
    } else {
        (None, version)
    };
    // A watch from a version that the server has not reached gets no event before that version.
    let events = collection.events(after.min(collection.revision())).map_err(refused)?;
    Ok(Start { initial, after, events: Some(events), refusal: None })
}

/// The objects that a watch covers.
pub(crate) struct Scope {
    namespace: Option<Box<str>>,
    selection: Selection,
}

impl Scope {
    fn has(&self, object: &Object) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| **namespace == *object.namespace)
            && self.selection.matches(object)
    }
}

struct Bookmarks {
    period: Duration,
    next: Instant,
}

/// A running watch. It holds one batch of the initial objects or of the collection's events, and the chunk that it is about to send. A slow client makes it ask the collection less often, until the collection no longer
/// has the next events.
struct Watching {
    frames: Frames,
    scope: Scope,
    /// The initial objects that are to come.
    initial: Option<Box<dyn Objects>>,
    first: vec::IntoIter<Arc<Object>>,
    /// The version of the bookmark that ends the initial events, until that is sent.
    initial_end: Option<u64>,
    refusal: Option<Status>,
    after: u64,
    /// `None` once the stream is over.
    events: Option<Box<dyn Events>>,
    batch: vec::IntoIter<Event>,
    end: Instant,
    bookmarks: Option<Bookmarks>,
}

impl Watching {
    /// The next chunk to send, or `None` at the end.
    async fn next(&mut self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        if let Some(status) = self.refusal.take() {
            self.frames.error(&status, &mut out);
            return Some(out);
        }
        loop {
            if Instant::now() >= self.end {
                return None;
            }
            self.take(&mut out);
            if out.len() >= CHUNK || (!out.is_empty() && self.initial.is_none()) {
                return Some(out);
            }
            if let Some(initial) = &mut self.initial {
                tokio::select! {
                    biased;
                    () = sleep_until(self.end) => return None,
                    batch = initial.next() => match batch {
                        Ok(batch) if batch.is_empty() => self.initial = None,
                        Ok(batch) => self.first = batch.into_iter(),
                        Err(error) => self.end(error, &mut out),
                    },
                }
                continue;
            }
            let events = self.events.as_mut()?;
            let bookmark = self.bookmarks.as_ref().map_or(self.end, |bookmarks| bookmarks.next.min(self.end));
            tokio::select! {
                biased;
                () = sleep_until(self.end) => return None,
                () = sleep_until(bookmark) => self.bookmark(&mut out),
                batch = events.next() => match batch {
                    Ok(batch) => self.batch = batch.events.into_iter(),
                    Err(error) => self.end(error, &mut out),
                },
            }
            if !out.is_empty() {
                return Some(out);
            }
        }
    }

    /// Ends the stream. Where the client was too slow, or the resource is gone, the real server closes it without an event: the next
    /// request gets the reason.
    fn end(&mut self, error: CollectionError, out: &mut Vec<u8>) {
        (self.initial, self.initial_end, self.events) = (None, None, None);
        if let CollectionError::Failed(status) = error {
            self.frames.error(&status, out);
        }
    }

    /// Writes the events that are pending.
    fn take(&mut self, out: &mut Vec<u8>) {
        self.events.iter().for_each(|events| self.frames.now(events.now()));
        while out.len() < CHUNK {
            let Some(object) = self.first.next() else { break };
            if self.scope.selection.matches(&object) {
                self.frames.added(&object, out);
            }
        }
        if self.initial.is_some() {
            return;
        }
        if out.len() < CHUNK
            && let Some(revision) = self.initial_end.take()
        {
            self.frames.bookmark(revision, true, out);
        }
        while out.len() < CHUNK {
            let Some(event) = self.batch.next() else { break };
            if event.object.revision > self.after {
                self.frames.event(&self.scope, &event, out);
            }
        }
    }

    fn bookmark(&mut self, out: &mut Vec<u8>) {
        let Some(bookmarks) = &mut self.bookmarks else { return };
        let now = Instant::now();
        let last = self.end.checked_sub(BEFORE_THE_END).filter(|last| *last > now);
        // No further bookmark after the last one: the end comes first.
        bookmarks.next = last.map_or(self.end, |last| last.min(now + bookmarks.period));
        let revision = self.events.as_ref().map_or(0, |events| events.revision());
        // The version that the client started from is not sent again as long as it is the newest.
        if revision > self.after {
            self.frames.bookmark(revision, false, out);
        }
    }
}
