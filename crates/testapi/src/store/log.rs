//! The newest events of a collection, numbered, up to a limit.

use std::collections::VecDeque;

use serve::{CollectionError, Event};

/// The newest events of a collection. Each event has a position that stays the same when older events are discarded.
#[derive(Debug)]
pub(super) struct Log {
    events: VecDeque<Event>,
    /// The position of the oldest event.
    first: u64,
    /// The log has all events after this revision.
    since: u64,
    limit: usize,
}

impl Log {
    /// An empty log of a collection at this revision.
    pub(super) fn new(since: u64, limit: usize) -> Self {
        Self { events: VecDeque::new(), first: 0, since, limit }
    }

    pub(super) fn push(&mut self, event: Event) {
        self.events.push_back(event);
        while self.events.len() > self.limit {
            self.forget_oldest();
        }
    }

    /// Discards all events.
    pub(super) fn compact(&mut self, now: u64) {
        while !self.events.is_empty() {
            self.forget_oldest();
        }
        self.since = now;
    }

    fn forget_oldest(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.since = event.object.revision;
            self.first += 1;
        }
    }

    /// The position after the newest event.
    pub(super) fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// The position of the first event after a revision.
    pub(super) fn position(&self, after: u64) -> Result<u64, CollectionError> {
        if after < self.since {
            return Err(self.expired());
        }
        Ok(self.first + self.events.partition_point(|event| event.object.revision <= after) as u64)
    }

    /// The events from a position on.
    pub(super) fn from(&self, position: u64) -> Result<impl Iterator<Item = &Event>, CollectionError> {
        let skip = position.checked_sub(self.first).ok_or_else(|| self.expired())?;
        Ok(self.events.range(usize::try_from(skip).unwrap_or(usize::MAX).min(self.events.len())..))
    }

    fn expired(&self) -> CollectionError {
        CollectionError::Expired { oldest: self.since }
    }
}
