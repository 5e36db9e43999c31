//! What was decoded for one subscription, held for the others: each of them is told of the same object, and between two of
//! them nobody would hold it.
//!
//! Subscriptions that are further apart than a window decode again. So one that is stuck has a window of values held at most, and
//! with what comes after that none: it is not waited for any more.

use std::any::{Any, TypeId};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use super::lock;

/// Values that were decoded for a subscription and that others of the same type are still to look at.
#[derive(Default)]
pub(crate) struct Recent(Mutex<Held>);

/// A subscription that looks at values, until it leaves.
pub(crate) struct Reader(u64);

#[derive(Default)]
struct Held {
    by_place: HashMap<usize, Entry>,
    /// Where the values are that are held, those that were decoded first in front; also some that are held no more.
    order: VecDeque<(u64, usize)>,
    /// What all values that were ever decoded weigh together.
    position: u64,
    readers: HashMap<u64, State>,
    joined: u64,
}

struct Entry {
    _value: Arc<dyn Any + Send + Sync>,
    /// What all those before it weigh.
    before: u64,
    /// So many subscriptions have not looked at it.
    left: usize,
}

struct State {
    view: TypeId,
    /// Where the others were when it looked last.
    position: u64,
    /// It had been told everything then, and is told what comes next as soon as the others are.
    is_idle: bool,
}

/// What is held weighs no more, in bytes of the objects as they came: 256 pods. Decoded they take four to five times as much.
pub(crate) const WINDOW: u64 = 2 << 20;
/// However small an object is.
const LEAST: u64 = WINDOW / 256;

impl Recent {
    /// One more subscription that looks at objects as a `T`.
    pub(crate) fn join<T: 'static>(&self) -> Reader {
        let mut held = lock(&self.0);
        held.joined += 1;
        let (number, state) =
            (held.joined, State { view: TypeId::of::<T>(), position: held.position, is_idle: false });
        held.readers.insert(number, state);
        Reader(number)
    }

    pub(crate) fn leave(&self, reader: &Reader) {
        lock(&self.0).readers.remove(&reader.0);
    }

    /// A subscription looks at the value of an object that has so many bytes. It is held until the others have looked as
    /// well. Returns what it weighs, where there are others.
    pub(crate) fn looked_at(&self, reader: &Reader, value: Arc<dyn Any + Send + Sync>, size: usize) -> u64 {
        let weight = (size as u64).max(LEAST);
        let place = Arc::as_ptr(&value).addr();
        let mut held = lock(&self.0);
        let mut dropped = Vec::new();
        let has_others = match held.by_place.get_mut(&place) {
            Some(entry) => {
                entry.left = entry.left.saturating_sub(1);
                if entry.left == 0 {
                    dropped.extend(held.by_place.remove(&place));
                }
                true
            }
            None => {
                let before = held.position;
                held.position = held.position.saturating_add(weight);
                let left = held.others(reader);
                if left > 0 {
                    held.by_place.insert(place, Entry { _value: value, before, left });
                    held.order.push_back((before, place));
                }
                held.keep_within_window(&mut dropped);
                left > 0
            }
        };
        let position = held.position;
        if let Some(state) = held.readers.get_mut(&reader.0) {
            state.position = position;
            state.is_idle = false;
        }
        drop(held);
        // The drop of a value is not to be waited for.
        drop(dropped);
        if has_others { weight } else { 0 }
    }

    /// A subscription has been told everything. Whether values are held for others.
    pub(crate) fn told_all(&self, reader: &Reader) -> bool {
        let mut held = lock(&self.0);
        if let Some(state) = held.readers.get_mut(&reader.0) {
            state.is_idle = true;
        }
        !held.by_place.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).by_place.is_empty()
    }

    /// Holds nothing any more: those who have not looked never will, as they had been told before.
    pub(crate) fn release(&self) {
        let held = {
            let mut held = lock(&self.0);
            held.order.clear();
            std::mem::take(&mut held.by_place)
        };
        drop(held);
    }
}

impl Held {
    /// How many other subscriptions of the same type are near enough to look at what is held.
    fn others(&self, reader: &Reader) -> usize {
        let Some(own) = self.readers.get(&reader.0) else { return 0 };
        let is_near = |state: &State| state.is_idle || self.position - state.position <= WINDOW;
        let others = self.readers.iter().filter(|(number, _)| **number != reader.0);
        others.filter(|(_, state)| state.view == own.view && is_near(state)).count()
    }

    fn keep_within_window(&mut self, dropped: &mut Vec<Entry>) {
        while let Some((before, place)) = self.order.front().copied()
            && self.position - before > WINDOW
        {
            self.order.pop_front();
            if self.by_place.get(&place).is_some_and(|entry| entry.before == before) {
                dropped.extend(self.by_place.remove(&place));
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    type Value = Arc<dyn Any + Send + Sync>;

    fn values(count: usize) -> Vec<Value> {
        (0..count).map(|number| -> Value { Arc::new(number) }).collect()
    }

    fn held(values: &[Value]) -> usize {
        values.iter().filter(|value| Arc::strong_count(value) > 1).count()
    }

    #[test]
    fn a_value_is_held_until_all_of_its_type_have_looked_at_it() {
        let recent = Recent::default();
        let readers = [(); 3].map(|()| recent.join::<usize>());
        let _of_another_type = recent.join::<u8>();
        for value in values(3) {
            for (nth, reader) in readers.iter().enumerate() {
                assert_eq!(recent.looked_at(reader, value.clone(), 0), LEAST);
                assert_eq!(Arc::strong_count(&value) > 1, nth < 2);
            }
        }
        assert!(recent.is_empty());
    }

    #[test]
    fn what_is_held_is_bounded_and_one_who_never_looks_is_not_waited_for() {
        for (size, fit) in [(0, 256), (100_000, 20), (3_000_000, 0)] {
            let recent = Recent::default();
            let (reader, _stuck) = (recent.join::<usize>(), recent.join::<usize>());
            let values = values(3 * fit + 3);
            for (number, value) in values.iter().enumerate() {
                recent.looked_at(&reader, value.clone(), size);
                assert!(held(&values) <= fit, "{} of {size} bytes after {number}", held(&values));
                if number + 1 == fit {
                    assert_eq!(held(&values), fit);
                }
            }
            assert_eq!(held(&values), 0, "of {size} bytes");
            assert_eq!(recent.looked_at(&reader, Arc::new(7_usize), size), 0, "nobody's turn");
            let held = lock(&recent.0);
            assert_eq!((held.by_place.len(), held.order.len()), (0, 0));
        }
    }

    #[test]
    fn one_who_looks_again_is_waited_for_again() {
        let recent = Recent::default();
        let (reader, slow) = (recent.join::<usize>(), recent.join::<usize>());
        for value in values(1_000) {
            recent.looked_at(&reader, value, 0);
        }
        assert_eq!(recent.looked_at(&slow, Arc::new(0_usize), 0), LEAST);
        let value: Value = Arc::new(1_usize);
        assert_eq!(recent.looked_at(&reader, value.clone(), 0), LEAST);
        assert_eq!(Arc::strong_count(&value), 2);
        recent.leave(&slow);
        assert_eq!(recent.looked_at(&reader, Arc::new(2_usize), 0), 0);
    }

    #[test]
    fn one_who_was_told_everything_is_waited_for_while_another_one_catches_up() {
        let recent = Recent::default();
        let [first, second, late] = [(); 3].map(|()| recent.join::<usize>());
        assert!(![&first, &second].map(|reader| recent.told_all(reader)).contains(&true));
        for value in values(1_000) {
            recent.looked_at(&late, value, 0);
        }
        let value: Value = Arc::new(0_usize);
        for (reader, held) in [(&first, true), (&second, true), (&late, false)] {
            recent.looked_at(reader, value.clone(), 0);
            assert_eq!(Arc::strong_count(&value) > 1, held);
        }
    }

    #[test]
    fn what_is_released_is_held_anew_when_it_is_looked_at_again() {
        let recent = Recent::default();
        let [first, second] = [(); 2].map(|()| recent.join::<usize>());
        let value: Value = Arc::new(1_usize);
        recent.looked_at(&first, value.clone(), 0);
        recent.release();
        assert!(recent.is_empty() && Arc::strong_count(&value) == 1);
        recent.looked_at(&first, value.clone(), 0);
        assert_eq!(Arc::strong_count(&value), 2);
        recent.looked_at(&second, value.clone(), 0);
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
