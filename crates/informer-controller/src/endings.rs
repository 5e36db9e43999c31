//! How many reconciliations have ended, and how.

use std::sync::atomic::{AtomicU64, Ordering};

/// How a reconciliation ended, for the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    Again,
    Failed,
    TimedOut,
    GaveUp,
    Panicked,
    Interrupted,
    /// It did not begin, because the caches lacked the controller's last write.
    PutOff,
}

impl Ending {
    pub(crate) const ALL: [Self; 8] = [
        Self::Done,
        Self::Again,
        Self::Failed,
        Self::TimedOut,
        Self::GaveUp,
        Self::Panicked,
        Self::Interrupted,
        Self::PutOff,
    ];

    /// Its value of the label `result`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Again => "again",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::GaveUp => "gave_up",
            Self::Panicked => "panicked",
            Self::Interrupted => "interrupted",
            Self::PutOff => "put_off",
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Endings([AtomicU64; Ending::ALL.len()]);

impl Endings {
    pub(crate) fn count(&self, ending: Ending) {
        if let Some(counter) = self.0.get(ending as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn counts(&self) -> [u64; Ending::ALL.len()] {
        std::array::from_fn(|ending| self.0.get(ending).map_or(0, |counter| counter.load(Ordering::Relaxed)))
    }
}
