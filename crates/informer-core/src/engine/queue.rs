//! Operations that wait for the writer. The queue is bounded, so that user code that does not return costs a known amount of
//! memory.

use std::collections::VecDeque;

use super::writer::Operation;
use crate::Time;

/// The queue is full when it holds this many bytes of objects. The object that fills it may exceed this.
const BYTES: usize = 4 * 1024 * 1024;
/// The queue is also full with this many operations, unless the start sets another number.
pub(super) const OPERATIONS: usize = 4096;
/// A longer queue is applied on another thread, whatever its operations are. On the connection thread it would delay the other
/// informers by milliseconds.
const LONG: usize = 256;

pub(super) struct Queue {
    operations: VecDeque<Operation>,
    bytes: usize,
    most: usize,
    full_since: Option<Time>,
}

impl Queue {
    pub(super) fn of(most: usize) -> Self {
        Self { operations: VecDeque::new(), bytes: 0, most: most.max(1), full_since: None }
    }

    pub(super) fn push(&mut self, now: Time, operation: Operation) {
        self.bytes += operation.bytes();
        self.operations.push_back(operation);
        if self.bytes >= BYTES || self.operations.len() >= self.most {
            self.full_since.get_or_insert(now);
        }
    }

    pub(super) fn pop(&mut self) -> Option<Operation> {
        let operation = self.operations.pop_front()?;
        self.bytes -= operation.bytes();
        self.full_since = None;
        Some(operation)
    }

    pub(super) fn take(&mut self) -> VecDeque<Operation> {
        (self.bytes, self.full_since) = (0, None);
        std::mem::take(&mut self.operations)
    }

    pub(super) fn front(&self) -> Option<&Operation> {
        self.operations.front()
    }

    pub(super) fn is_long(&self) -> bool {
        self.operations.len() > LONG
    }

    pub(super) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.full_since.is_some()
    }

    /// The time since which the queue has been full.
    pub(super) fn full_since(&self) -> Option<Time> {
        self.full_since
    }
}
