//! How long somebody waits for an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// How long somebody waits for the answers of a reader; by default, as long as they take.
#[derive(Debug, Clone, Default)]
pub struct Patience {
    /// When it ends at the latest.
    pub deadline: Option<Instant>,
    /// Whether nobody waits any more.
    pub is_over: Arc<AtomicBool>,
}

impl Patience {
    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}
