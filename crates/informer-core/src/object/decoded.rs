//! The decoded values of one object version, shared while somebody holds them.
//!
//! A `Weak` keeps the memory of its value, though not what that refers to: a `Pod` is 2 KB of it. So values that nobody
//! holds any more have to be looked for. [`LENT`] knows which objects to ask, and each decode asks two of them in turn: all
//! were asked when half as many values were decoded as there are, so what is not needed is about as much as what is at most.

use std::any::{Any, TypeId};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, PoisonError, Weak};

use crate::sync::{Mutex, MutexGuard};

/// Empty until the first decode: 16 bytes.
#[derive(Default)]
pub(super) struct DecodedSlot(OnceLock<Arc<Values>>);

struct Values(Mutex<Listed>);

#[derive(Default)]
struct Listed {
    /// One per type that somebody decodes this object into: rarely more than one.
    values: Vec<Value>,
    is_lent: bool,
}

struct Value {
    type_id: TypeId,
    shared: Weak<dyn Any + Send + Sync>,
    /// Holds the value where it is to live as long as the object.
    kept: Option<Arc<dyn Any + Send + Sync>>,
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
        if let Some(value) = self.shared::<T>() {
            return Ok(value);
        }
        let fresh = Arc::new(decode()?);
        let slot = self.0.get_or_init(|| Arc::new(Values(Mutex::new(Listed::default()))));
        let mut listed = slot.lock();
        if let Some(held) = listed.values.iter().find_map(Value::as_held::<T>) {
            return Ok(held);
        }
        listed.forget_dead();
        let shared: Arc<dyn Any + Send + Sync> = fresh.clone();
        listed.values.reserve_exact(1);
        listed.values.push(Value { type_id: TypeId::of::<T>(), shared: Arc::downgrade(&shared), kept: None });
        let was_lent = std::mem::replace(&mut listed.is_lent, true);
        drop(listed);
        if !was_lent {
            Lent::add(Arc::downgrade(slot));
        }
        Ok(fresh)
    }

    /// Makes `value` live as long as the object.
    pub(super) fn keep<T: Send + Sync + 'static>(&self, value: &Arc<T>) {
        let Some(slot) = self.0.get() else { return };
        if let Some(entry) = slot.lock().values.iter_mut().find(|entry| entry.is::<T>()) {
            entry.kept = Some(value.clone());
        }
    }

    fn shared<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.0.get()?.lock().values.iter().find_map(Value::as_held::<T>)
    }
}

impl Values {
    /// No user code runs under this lock, so a poisoned one holds nothing half-done.
    fn lock(&self) -> MutexGuard<'_, Listed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody else than the object holds one of its values.
    fn still_lent(&self) -> bool {
        let mut listed = self.lock();
        listed.forget_dead();
        listed.is_lent = listed.values.iter().any(|value| value.kept.is_none());
        listed.is_lent
    }
}

impl Listed {
    fn forget_dead(&mut self) {
        self.values.retain(|value| value.shared.strong_count() > 0);
        if self.values.is_empty() {
            self.values = Vec::new();
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
