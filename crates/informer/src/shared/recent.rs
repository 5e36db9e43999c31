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

/// Subscriptions that are further apart decode again, and one that is stuck holds no more than this. A decoded pod takes 33 KB
/// and more.
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

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).by_place.is_empty()
    }

    /// Holds nothing any more: those who have not looked never will, as they read another type, or had been told before.
    pub(crate) fn release(&self) {
        let held = {
            let mut held = lock(&self.0);
            held.order.clear();
            std::mem::take(&mut held.by_place)
        };
        drop(held);
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
    fn what_is_released_is_held_anew_when_it_is_looked_at_again() {
        let recent = Recent::default();
        let value: Arc<dyn Any + Send + Sync> = Arc::new(1);
        assert!(!recent.looked_at(value.clone(), 2));
        recent.release();
        assert!(recent.is_empty() && Arc::strong_count(&value) == 1);
        assert_eq!([1, 2, 3].map(|_| recent.looked_at(value.clone(), 2)), [false, true, true]);
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
