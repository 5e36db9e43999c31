//! What a watch has served so far: by it, a clean end is no trouble (W3), or may be (W4).

use std::time::Duration;

use informer_core::Time;

/// A watch that lives this long has been served, whatever it brought.
const LONG_ENOUGH: Duration = Duration::from_secs(1);
/// So many events in a shorter time are enough, too: one may be chance.
const ENOUGH_EVENTS: u32 = 2;

/// One watch, from its request on; a streaming list, from the end of its initial events on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Served {
    since: Option<Time>,
    events: u32,
}

impl Served {
    pub(crate) fn asked() -> Self {
        Self { since: None, events: 0 }
    }

    pub(crate) fn accepted(now: Time) -> Self {
        Self { since: Some(now), events: 0 }
    }

    pub(crate) fn was_accepted(&mut self, now: Time) {
        self.since = Some(now);
    }

    pub(crate) fn heard(&mut self, events: u32) {
        self.events += events;
    }

    /// Nothing has come back yet.
    pub(crate) fn is_new(self) -> bool {
        self.since.is_none()
    }

    /// Whether it has been served, so that its end says nothing bad.
    pub(crate) fn is_enough(self, now: Time) -> bool {
        self.since.is_some_and(|since| now.since(since) >= LONG_ENOUGH || self.events >= ENOUGH_EVENTS)
    }
}
