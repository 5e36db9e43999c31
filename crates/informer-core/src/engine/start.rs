//! The settings of an engine.

use std::sync::Arc;

use crate::reader::{Expected, ResponseReader};
use crate::reflector::ReflectorConfig;
use crate::share::Share;
use crate::wire::Limits;
use crate::{PlainStorage, Scope, Shelf};

use super::follow::StreamingRefusals;
use super::outbox::{Outbox, SLICE};
use super::queue::{OPERATIONS, Queue};
use super::writer::TransformFn;
use super::{Engine, Time};

/// Everything about an informer that is set before it runs.
#[derive(Clone)]
#[non_exhaustive]
pub struct Start {
    /// The kind of the objects.
    pub expected: Expected,
    /// The scopes to list and watch.
    pub scopes: Vec<Scope>,
    /// How to list and watch.
    pub reflector: ReflectorConfig,
    /// How large an object may be.
    pub limits: Limits,
    /// Changes or drops each object before it is stored.
    pub transform: Option<TransformFn>,
    /// The share of the objects that is kept; the others are left out before they are stored. `None` keeps all.
    pub share: Option<Share>,
    /// Whether objects are decoded without their managed fields.
    pub skips_managed_fields: bool,
    /// How many operations may wait for user code before the engine takes no more bytes. In any case at most 4 MiB of objects
    /// wait.
    pub queued_operations: usize,
    /// How many changes go into mailboxes before other informers of the thread get their turn. A change counts once for each
    /// mailbox.
    pub changes_at_once: usize,
    /// The seed of random waits and timeouts.
    pub seed: u64,
    /// The group and version of the resource, as in `apps/v1`.
    pub api_version: String,
    /// The streaming lists that the server refused to this engine or to others.
    pub streaming_refusals: Arc<StreamingRefusals>,
}

/// The settings that the start fixes.
pub(super) struct Running {
    pub(super) reader: ResponseReader,
    pub(super) reflector: ReflectorConfig,
    pub(super) limits: Limits,
    pub(super) seed: u64,
    pub(super) api_version: String,
    pub(super) streaming_refusals: Arc<StreamingRefusals>,
}

impl Start {
    /// The settings for these scopes, otherwise with defaults.
    pub fn new(expected: Expected, scopes: impl IntoIterator<Item = Scope>) -> Self {
        Self {
            api_version: expected.api_version.clone(),
            streaming_refusals: Arc::default(),
            expected,
            scopes: scopes.into_iter().collect(),
            reflector: ReflectorConfig::default(),
            limits: Limits::default(),
            transform: None,
            share: None,
            skips_managed_fields: false,
            queued_operations: OPERATIONS,
            changes_at_once: SLICE,
            seed: 0,
        }
    }
}

impl Engine {
    /// Starts the engine. A second start changes nothing.
    pub(super) fn start(&mut self, now: Time, start: Start) {
        if self.running.is_some() {
            return;
        }
        let Start { expected, scopes, reflector, limits, transform, share, skips_managed_fields, .. } = start;
        let (seed, queued) = (start.seed, start.queued_operations);
        let (api_version, streaming_refusals) = (start.api_version, start.streaming_refusals);
        self.queue = Queue::of(queued);
        self.outbox = Outbox::of(start.changes_at_once);
        // A transform needs the unpacked object, so the reader keeps objects plain and the writer stores the result.
        let shelf = match transform {
            None => self.shelf.clone(),
            Some(_) => Shelf::cold(Arc::new(PlainStorage)),
        };
        let reader = ResponseReader::new(self.cache.clone(), shelf, expected).keeping(share);
        let reader = if skips_managed_fields { reader.skipping_managed_fields() } else { reader };
        if let super::Desk::Here(writer) = &mut self.desk {
            writer.transform_with(transform, skips_managed_fields);
        }
        self.running = Some(Running { reader, reflector, limits, seed, api_version, streaming_refusals });
        for scope in scopes {
            self.add_scope(now, scope);
        }
    }
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Start")
            .field("expected", &self.expected)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}
