//! What was decoded for one handler, held for the others: each of them is told of the same object, and between two of them
//! nobody would hold it.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use super::lock;

/// Values that were decoded for a subscription and that others are still to be told of.
#[derive(Default)]
pub(crate) struct Recent(Mutex<Held>);

#[derive(Default)]
struct Held {
    by_place: HashMap<usize, Entry>,
    /// The places, those that were decoded first in front; also some that are held no more, or again by another value.
    order: VecDeque<(u64, usize)>,
    /// Counts the values.
    count: u64,
}

struct Entry {
    value: Arc<dyn Any + Send + Sync>,
    number: u64,
    /// So many subscriptions have not looked at it.
    left: usize,
}

/// Subscriptions that are further apart decode again: one that is stuck, or of another type, holds no more than this. A decoded
/// pod takes 33 KB and more.
const MOST: usize = 256;

impl Recent {
    /// So many values at most.
    pub(crate) const MOST: usize = MOST;

    /// Holds a value until as many others have looked at it as there are. Whether somebody held it for this one.
    pub(crate) fn looked_at(&self, value: Arc<dyn Any + Send + Sync>, others: usize) -> bool {
        let place = Arc::as_ptr(&value).addr();
        let mut held = lock(&self.0);
        let mut dropped = None;
        let was_held = if let Some(entry) = held.by_place.get_mut(&place) {
            entry.left = entry.left.saturating_sub(1);
            if entry.left == 0 {
                dropped = held.by_place.remove(&place);
            }
            true
        } else {
            held.count += 1;
            let number = held.count;
            held.by_place.insert(place, Entry { value, number, left: others });
            held.order.push_back((number, place));
            if held.order.len() > MOST
                && let Some((oldest, place)) = held.order.pop_front()
                && held.by_place.get(&place).is_some_and(|entry| entry.number == oldest)
            {
                dropped = held.by_place.remove(&place);
            }
            false
        };
        drop(held);
        // A value's drop is not to be waited for.
        drop(dropped.map(|entry| entry.value));
        was_held
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_held_until_all_have_looked_at_it() {
        let recent = Recent::default();
        let value: Arc<dyn Any + Send + Sync> = Arc::new(1);
        let looks = [1, 2, 3].map(|_| recent.looked_at(value.clone(), 2));
        assert_eq!(looks, [false, true, true]);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn one_who_never_looks_holds_a_bounded_number() {
        let recent = Recent::default();
        let values: Vec<Arc<dyn Any + Send + Sync>> =
            (0..3 * MOST).map(|number| -> Arc<dyn Any + Send + Sync> { Arc::new(number) }).collect();
        for value in &values {
            recent.looked_at(value.clone(), 1);
        }
        let held = values.iter().filter(|value| Arc::strong_count(value) > 1).count();
        assert_eq!(held, MOST);
        let held = lock(&recent.0);
        assert_eq!((held.by_place.len(), held.order.len()), (MOST, MOST));
    }
}
