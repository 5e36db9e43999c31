//! The decoded values of one object version, shared while somebody holds them.
//!
//! A `Weak` keeps the memory of its value, though not what that refers to: a `Pod` is 2 KB of it. So values that nobody
//! holds any more have to be looked for. [`LENT`] knows which objects to ask, and each decode asks two of them in turn: all
//! were asked when half as many values were decoded as there are, so what is not needed is about as much as what is at most.

use std::any::{Any, TypeId};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, Weak};

use crate::sync::{Mutex, MutexGuard, OnceLock};

/// Empty until the first decode: 16 bytes, and 64 from then on.
#[derive(Default)]
pub(super) struct DecodedSlot(OnceLock<Arc<Values>>);

#[derive(Default)]
struct Values {
    /// Lives as long as the object. In a place of its own, where a look at it takes no lock: that is what it is kept
    /// for.
    kept: OnceLock<Arc<dyn Any + Send + Sync>>,
    listed: Mutex<Listed>,
}

/// One per type that somebody decodes this object into, but for the one that is kept: rarely more than one.
#[derive(Default)]
struct Listed {
    values: Box<[Value]>,
}

struct Value {
    type_id: TypeId,
    shared: Weak<dyn Any + Send + Sync>,
    /// Holds the value where it is to live as long as the object, as another one does already.
    kept: Option<Arc<dyn Any + Send + Sync>>,
    /// The object is in [`LENT`]; where it is, of one value at least. Here it takes no memory when there are none.
    is_lent: bool,
}

/// The objects with values that somebody held when they were last asked, the one that is asked next first.
struct Lent(VecDeque<Weak<Values>>);

static LENT: std::sync::Mutex<Lent> = std::sync::Mutex::new(Lent(VecDeque::new()));

/// By each decode, each for less than a microsecond.
const ASKED: usize = 2;

impl DecodedSlot {
    /// The value that somebody holds already, or what `decode` makes. The lock is not held while decoding: two callers
    /// at once may both decode, and the first one's value is the one that both get.
    pub(super) fn shared_or<T: Send + Sync + 'static, E>(
        &self,
        decode: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        if let Some(value) = self.kept().or_else(|| self.shared()) {
            return Ok(value);
        }
        decode().map(|value| self.share(Arc::new(value)))
    }

    /// The value that lives as long as the object, from now on if not before: one that somebody holds already, or what
    /// `decode` makes.
    pub(super) fn kept_or<T: Send + Sync + 'static, E>(
        &self,
        decode: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        if let Some(value) = self.kept() {
            return Ok(value);
        }
        let value = self.shared().map_or_else(|| decode().map(Arc::new), Ok)?;
        let values = self.values();
        // Under the lock of those who share one: of several at once the first one's value is what all get.
        let listed = values.lock();
        let first = listed.values.iter().find_map(Value::as_held::<T>).unwrap_or_else(|| value.clone());
        values.kept.get_or_init(|| first.clone());
        drop(listed);
        // Of several types the first one's has the place.
        Ok(self.kept().unwrap_or_else(|| self.keep_beside(first)))
    }

    fn share<T: Send + Sync + 'static>(&self, fresh: Arc<T>) -> Arc<T> {
        let values = self.values();
        let mut listed = values.lock();
        if let Some(held) = self.kept().or_else(|| listed.values.iter().find_map(Value::as_held::<T>)) {
            return held;
        }
        let was_lent = listed.values.iter().any(|value| value.is_lent);
        listed.forget_dead();
        let shared: Arc<dyn Any + Send + Sync> = fresh.clone();
        let (type_id, shared) = (TypeId::of::<T>(), Arc::downgrade(&shared));
        let value = Value { type_id, shared, kept: None, is_lent: true };
        listed.values = std::mem::take(&mut listed.values).into_iter().chain([value]).collect();
        drop(listed);
        if !was_lent {
            Lent::add(Arc::downgrade(values));
        }
        fresh
    }

    /// Of the kept value, if there is one.
    #[inline]
    pub(super) fn references(&self) -> usize {
        self.0.get().and_then(|values| values.kept.get()).map_or(0, Arc::strong_count)
    }

    fn values(&self) -> &Arc<Values> {
        self.0.get_or_init(Arc::default)
    }

    fn keep_beside<T: Send + Sync + 'static>(&self, value: Arc<T>) -> Arc<T> {
        let value = self.share(value);
        if let Some(entry) = self.values().lock().values.iter_mut().find(|entry| entry.is::<T>()) {
            entry.kept = Some(value.clone());
        }
        value
    }

    #[inline]
    fn kept<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let kept = self.0.get()?.kept.get()?;
        (**kept).is::<T>().then(|| Arc::downcast(kept.clone()).ok())?
    }

    fn shared<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.0.get()?.lock().values.iter().find_map(Value::as_held::<T>)
    }
}

impl Values {
    /// No user code runs under this lock, so a poisoned one holds nothing half-done.
    fn lock(&self) -> MutexGuard<'_, Listed> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody else than the object holds one of its values.
    fn still_lent(&self) -> bool {
        let mut listed = self.lock();
        listed.forget_dead();
        let kept = self.kept.get().map(|kept| (**kept).type_id());
        let is_lent = |value: &Value| value.kept.is_none() && kept != Some(value.type_id);
        let is_lent = listed.values.iter().any(is_lent);
        listed.values.iter_mut().for_each(|value| value.is_lent = is_lent);
        is_lent
    }
}

impl Listed {
    fn forget_dead(&mut self) {
        if self.values.iter().any(|value| value.shared.strong_count() == 0) {
            let values = std::mem::take(&mut self.values).into_iter();
            self.values = values.filter(|value| value.shared.strong_count() > 0).collect();
        }
    }
}

impl Value {
    fn is<T: 'static>(&self) -> bool {
        self.type_id == TypeId::of::<T>()
    }

    fn as_held<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        if !self.is::<T>() {
            return None;
        }
        Arc::downcast(self.shared.upgrade()?).ok()
    }
}

impl Lent {
    fn add(object: Weak<Values>) {
        let asked: [Option<Weak<Values>>; ASKED] = {
            let mut lent = Self::lock();
            lent.0.push_back(object);
            std::array::from_fn(|_| lent.0.pop_front())
        };
        // Asked without the lock: a value that is dropped here may be of a type that decodes when it is.
        let is_lent = |object: &Weak<Values>| object.upgrade().is_some_and(|object| object.still_lent());
        let asked = asked.map(|object| object.filter(is_lent));
        let mut lent = Self::lock();
        lent.0.extend(asked.into_iter().flatten());
        if lent.0.capacity() > 4 * lent.0.len().max(ASKED) {
            let enough = 2 * lent.0.len();
            lent.0.shrink_to(enough);
        }
    }

    fn lock() -> std::sync::MutexGuard<'static, Self> {
        LENT.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    fn made<T>(value: T) -> impl FnOnce() -> Result<T, Infallible> {
        move || Ok(value)
    }

    fn not_again<T>() -> Result<T, Infallible> {
        panic!("decoded again")
    }

    #[test]
    fn values_of_two_types_are_both_kept() {
        let slot = DecodedSlot::default();
        let number = Arc::downgrade(&slot.kept_or(made(7_u64)).unwrap());
        let text = Arc::downgrade(&slot.kept_or(made("seven".to_owned())).unwrap());
        assert!(Weak::ptr_eq(&number, &Arc::downgrade(&slot.kept_or(not_again::<u64>).unwrap())));
        assert!(Weak::ptr_eq(&text, &Arc::downgrade(&slot.shared_or(not_again::<String>).unwrap())));
        drop(slot);
        assert!(number.upgrade().is_none() && text.upgrade().is_none(), "kept no longer than the object");
    }

    #[test]
    fn what_somebody_holds_is_what_is_kept() {
        let slot = DecodedSlot::default();
        let held = slot.shared_or(made(7_u64)).unwrap();
        let kept = slot.kept_or(not_again::<u64>).unwrap();
        assert!(Arc::ptr_eq(&held, &kept));
        drop((held, kept));
        assert_eq!(*slot.shared_or(not_again::<u64>).unwrap(), 7);
    }

    #[test]
    fn what_is_kept_beside_another_type_was_shared_before() {
        let slot = DecodedSlot::default();
        slot.kept_or(made("seven".to_owned())).unwrap();
        let held = slot.shared_or(made(7_u64)).unwrap();
        assert!(Arc::ptr_eq(&held, &slot.kept_or(not_again::<u64>).unwrap()));
        drop(held);
        assert_eq!(*slot.kept_or(not_again::<u64>).unwrap(), 7);
    }

    #[test]
    fn a_value_that_is_not_kept_goes_with_who_held_it() {
        let slot = DecodedSlot::default();
        drop(slot.shared_or(made(7_u64)).unwrap());
        assert_eq!(*slot.shared_or(made(8_u64)).unwrap(), 8);
    }

    #[test]
    fn of_those_who_come_at_once_all_get_one_value_of_their_type() {
        for round in 0..200 {
            let (slot, start) = (DecodedSlot::default(), Barrier::new(4));
            let numbers = thread::scope(|scope| {
                let keeper = |value: u64| {
                    start.wait();
                    slot.kept_or(made(value)).unwrap()
                };
                let sharer = |value: u64| {
                    start.wait();
                    slot.shared_or(made(value)).unwrap()
                };
                let others = scope.spawn(|| {
                    start.wait();
                    slot.kept_or(made("text".to_owned())).unwrap()
                });
                let threads = [
                    scope.spawn(move || keeper(1)),
                    scope.spawn(move || keeper(2)),
                    scope.spawn(move || sharer(3)),
                ];
                assert_eq!(*others.join().unwrap(), "text");
                threads.map(|thread| thread.join().unwrap())
            });
            assert!(
                numbers.iter().all(|number| Arc::ptr_eq(number, &numbers[0])),
                "{numbers:?} in round {round}"
            );
            assert!(Arc::ptr_eq(&numbers[0], &slot.kept_or(not_again::<u64>).unwrap()));
        }
    }
}
