//! What was decoded last for a handler, held for the others: each of them is told of the same object, one after the other, and
//! between two of them nobody would hold it.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::lock;

/// The values that were decoded last, so many at most.
#[derive(Default)]
pub(crate) struct Recent(Mutex<VecDeque<Arc<dyn Any + Send + Sync>>>);

impl Recent {
    /// Handlers that are further apart decode again. A decoded pod takes 33 KB and more.
    pub(crate) const HELD: usize = 32;

    /// Holds a value for a while.
    pub(crate) fn hold(&self, value: Arc<dyn Any + Send + Sync>) {
        let mut held = lock(&self.0);
        held.push_back(value);
        let oldest = if held.len() > Self::HELD { held.pop_front() } else { None };
        drop(held);
        // A value's drop is not to be waited for.
        drop(oldest);
    }
}
