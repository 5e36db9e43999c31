//! Spans and log lines of reconciliations.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

use informer::ObjectKey;
use informer_core::control::Work;
use tokio::time::Instant;
use tracing::Span;

use crate::endings::Ending;
use crate::trigger::Triggers;

/// The span of one reconciliation.
pub(super) struct Told {
    span: Span,
    begun: Instant,
    attempt: u32,
}

impl Told {
    pub(super) fn begin(controller: &str, work: &Work, failures: u32) -> Self {
        let (attempt, causes) = (failures.saturating_add(1), Triggers::from_bits(work.causes));
        let span = tracing::info_span!(
            "reconcile", controller, key = %work.key, ?causes, attempt, result = tracing::field::Empty
        );
        Self { span, begun: Instant::now(), attempt }
    }

    pub(super) fn span(&self) -> Span {
        self.span.clone()
    }

    pub(super) fn end(&self, ending: Ending) {
        let (result, duration) = (ending.name(), self.begun.elapsed());
        self.span.record("result", result);
        tracing::debug!(parent: &self.span, result, ?duration, "reconciled");
    }
}

/// The last error of each key that fails, by its hash: a warning tells each once.
#[derive(Default)]
pub(super) struct Failures(HashMap<ObjectKey, u64>);

impl Failures {
    pub(super) fn tell(&mut self, told: &Told, key: &ObjectKey, error: &str, retry_in: Duration) {
        let attempt = told.attempt;
        if self.is_new(key, error) {
            tracing::warn!(parent: &told.span, error, attempt, ?retry_in, "failed; tried again later");
        } else {
            tracing::debug!(parent: &told.span, error, attempt, ?retry_in, "failed as before; tried again later");
        }
    }

    pub(super) fn give_up(&mut self, told: &Told, key: &ObjectKey, error: &str) {
        if self.is_new(key, error) {
            tracing::error!(parent: &told.span, error, "given up until the next change");
        } else {
            tracing::debug!(parent: &told.span, error, "given up as before, until the next change");
        }
    }

    fn is_new(&mut self, key: &ObjectKey, error: &str) -> bool {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(error);
        self.0.insert(key.clone(), hash) != Some(hash)
    }

    pub(super) fn settled(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }
}
