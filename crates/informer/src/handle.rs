//! The common part of all typed handles of an informer: it keeps the shared part alive, and has the type.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use informer_core::{DecodeError, Object, Room, View};

use crate::item::{Decoder, Item};
use crate::shared::{Core, Shared};

/// Keeps an informer alive, and decodes its objects as `T`s.
pub(crate) struct Handle<T> {
    shared: Arc<Shared>,
    view: PhantomData<fn() -> T>,
}

impl<T> Handle<T> {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, view: PhantomData }
    }

    pub(crate) fn cast<U>(&self) -> Handle<U> {
        Handle::new(self.shared.clone())
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        self.shared.core()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl<T: View> Decoder<T> for Handle<T> {
    fn item_in(&self, object: &Arc<Object>, room: Room) -> Result<Item<T>, DecodeError> {
        Ok(Item::new(T::of(object, &self.core().shelf, room)?, object.clone()))
    }

    fn report(&self, error: &DecodeError) {
        self.core().undecodable::<T>(error);
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), view: PhantomData }
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.shared.core();
        write!(f, "Informer({}, {})", core.resource, core.selection)
    }
}
