//! The decoded values of one object version, shared while somebody holds them.

use std::any::{Any, TypeId};
use std::sync::{Arc, PoisonError, Weak};

use crate::sync::{Mutex, MutexGuard};

/// Empty until the first decode: 16 bytes.
#[derive(Default)]
pub(super) struct DecodedSlot(Mutex<Option<Box<Values>>>);

/// One entry per type that somebody decodes this object into: rarely more than one.
#[derive(Default)]
struct Values(Vec<Value>);

struct Value {
    type_id: TypeId,
    shared: Weak<dyn Any + Send + Sync>,
    /// Holds the value where it is to live as long as the object.
    kept: Option<Arc<dyn Any + Send + Sync>>,
}

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
        let mut slot = self.lock();
        let values = &mut slot.get_or_insert_default().0;
        if let Some(held) = values.iter().find_map(Value::as_held::<T>) {
            return Ok(held);
        }
        values.retain(|value| value.shared.strong_count() > 0);
        let shared: Arc<dyn Any + Send + Sync> = fresh.clone();
        values.push(Value { type_id: TypeId::of::<T>(), shared: Arc::downgrade(&shared), kept: None });
        Ok(fresh)
    }

    /// Makes `value` live as long as the object.
    pub(super) fn keep<T: Send + Sync + 'static>(&self, value: &Arc<T>) {
        if let Some(entry) =
            self.lock().as_mut().and_then(|values| values.0.iter_mut().find(|entry| entry.is::<T>()))
        {
            entry.kept = Some(value.clone());
        }
    }

    fn shared<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.lock().as_ref()?.0.iter().find_map(Value::as_held::<T>)
    }

    /// No user code runs under this lock, so a poisoned one holds nothing half-done.
    fn lock(&self) -> MutexGuard<'_, Option<Box<Values>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
