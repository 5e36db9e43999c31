//! Whether a watch was served, so that its clean end is no failure (W3, W4).

use std::time::Duration;

use informer_core::Time;

/// A watch that lasts this long was served, even without an event.
const LONG_ENOUGH: Duration = Duration::from_secs(1);
/// A shorter watch was served if it brought this many events. A single one may be chance.
const ENOUGH_EVENTS: u32 = 2;

/// A watch since its request, or a streaming list since the end of its initial events.
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

    /// Whether the server has not answered yet.
    pub(crate) fn is_new(self) -> bool {
        self.since.is_none()
    }

    /// Whether the watch was served by now.
    pub(crate) fn is_enough(self, now: Time) -> bool {
        self.since.is_some_and(|since| now.since(since) >= LONG_ENOUGH || self.events >= ENOUGH_EVENTS)
    }
}
