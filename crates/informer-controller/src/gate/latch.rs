//! The state of a gate in one number, which threads share without a lock: until when it is open, or why it is closed.

use std::time::Duration;

use informer_core::Time;

use super::Loss;
use crate::sync::{AtomicU64, Ordering};

/// Nanoseconds until which the gate is open; below [`FIRST`], the place in [`LOSSES`] of the reason why it is closed.
pub(super) struct Latch(AtomicU64);

const LOSSES: [Loss; 4] = [Loss::Expired, Loss::Taken, Loss::Deleted, Loss::Released];
const FIRST: u64 = LOSSES.len() as u64;

impl Latch {
    pub(super) fn open(until: Time) -> Self {
        Self(AtomicU64::new(number(until)))
    }

    /// How long the gate stays open without a further extension, or why it is closed. The call that finds the time over closes
    /// it, and calls `closed`.
    pub(super) fn left(&self, now: impl Fn() -> Time, closed: impl FnOnce()) -> Result<Duration, Loss> {
        loop {
            let until = self.0.load(Ordering::Acquire);
            if let Some(loss) = loss(until) {
                return Err(loss);
            }
            let left = Duration::from_nanos(until.saturating_sub(nanos(now())));
            if !left.is_zero() {
                return Ok(left);
            }
            let expired = code(Loss::Expired);
            // Otherwise it was extended or closed meanwhile.
            if self.0.compare_exchange(until, expired, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                closed();
                return Err(Loss::Expired);
            }
        }
    }

    /// Keeps the gate open until then, at least, or returns why it is closed.
    pub(super) fn extend(&self, until: Time) -> Result<(), Loss> {
        self.change(|current| number(until).max(current))
    }

    /// Closes the gate, unless it is closed: the first reason stays.
    pub(super) fn close(&self, loss: Loss) {
        let _ = self.change(|_| code(loss));
    }

    fn change(&self, to: impl Fn(u64) -> u64) -> Result<(), Loss> {
        let changed = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |current| {
            loss(current).is_none().then(|| to(current))
        });
        changed.map(drop).map_err(|closed| loss(closed).unwrap_or(Loss::Expired))
    }
}

fn loss(number: u64) -> Option<Loss> {
    usize::try_from(number).ok().and_then(|place| LOSSES.get(place)).copied()
}

fn code(loss: Loss) -> u64 {
    LOSSES.iter().zip(0..).find_map(|(one, code)| (*one == loss).then_some(code)).unwrap_or_default()
}

fn number(until: Time) -> u64 {
    nanos(until).max(FIRST)
}

fn nanos(time: Time) -> u64 {
    u64::try_from(time.since(Time::ZERO).as_nanos()).unwrap_or(u64::MAX)
}
