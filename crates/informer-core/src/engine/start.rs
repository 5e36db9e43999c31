//! The settings of an engine.

use crate::reader::{Expected, ResponseReader};
use crate::reflector::ReflectorConfig;
use crate::wire::Limits;
use crate::{PlainStorage, Scope, Shelf};

use super::dispatch::{Dispatch, SLICE};
use super::queue::{OPERATIONS, Queue};
use super::writer::TransformFn;
use super::{Engine, Time};

/// Everything about an informer that is set before it runs.
#[derive(Clone)]
#[non_exhaustive]
pub struct Start {
    /// The kind of the objects.
    pub expected: Expected,
    /// Where to look.
    pub scopes: Vec<Scope>,
    /// How to list and watch.
    pub reflector: ReflectorConfig,
    /// How large an object may be.
    pub limits: Limits,
    /// Changes each object before it is kept.
    pub transform: Option<TransformFn>,
    /// Objects are decoded without their managed fields.
    pub skips_managed_fields: bool,
    /// How many operations wait for user code before the engine takes no more bytes; 4 MiB of objects at most in any case.
    pub queued_operations: usize,
    /// How many changes go into mailboxes before other informers of the thread have their turn, counted once for each mailbox.
    pub changes_at_once: usize,
    /// For random waits and timeouts.
    pub seed: u64,
}

/// What the start sets.
pub(super) struct Running {
    pub(super) reader: ResponseReader,
    pub(super) reflector: ReflectorConfig,
    pub(super) limits: Limits,
    pub(super) seed: u64,
}

impl Start {
    /// With the defaults of everything that can be chosen.
    pub fn new(expected: Expected, scopes: impl IntoIterator<Item = Scope>) -> Self {
        Self {
            expected,
            scopes: scopes.into_iter().collect(),
            reflector: ReflectorConfig::default(),
            limits: Limits::default(),
            transform: None,
            skips_managed_fields: false,
            queued_operations: OPERATIONS,
            changes_at_once: SLICE,
            seed: 0,
        }
    }
}

impl Engine {
    /// Starts once; later starts change nothing.
    pub(super) fn start(&mut self, now: Time, start: Start) {
        if self.running.is_some() {
            return;
        }
        let Start { expected, scopes, reflector, limits, transform, skips_managed_fields, .. } = start;
        let (seed, queued) = (start.seed, start.queued_operations);
        self.queue = Queue::of(queued);
        self.dispatch = Dispatch::of(start.changes_at_once);
        // The transform sees an object before it is packed.
        let shelf = match transform {
            None => self.shelf.clone(),
            Some(_) => Shelf::cold(std::sync::Arc::new(PlainStorage)),
        };
        let reader = ResponseReader::new(self.cache.clone(), shelf, expected);
        let reader = if skips_managed_fields { reader.skipping_managed_fields() } else { reader };
        if let super::Desk::Here(writer) = &mut self.desk {
            writer.transform_with(transform, skips_managed_fields);
        }
        self.running = Some(Running { reader, reflector, limits, seed });
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
