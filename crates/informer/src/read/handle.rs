//! The common part of all typed handles of an informer: it keeps the shared part alive, and has the type.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use informer_core::{DecodeError, Object, Room, View};

use crate::inner::{Core, Lifeline};
use crate::read::generated::Generated;
use crate::read::item::{Decoder, Item};

/// Keeps an informer alive, and decodes its objects as `T`s.
pub(crate) struct Handle<T> {
    lifeline: Arc<Lifeline>,
    view: PhantomData<fn() -> T>,
}

impl<T> Handle<T> {
    pub(crate) fn new(lifeline: Arc<Lifeline>) -> Self {
        Self { lifeline, view: PhantomData }
    }

    pub(crate) fn cast<U>(&self) -> Handle<U> {
        Handle::new(self.lifeline.clone())
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        self.lifeline.core()
    }

    pub(crate) fn lifeline(&self) -> &Arc<Lifeline> {
        &self.lifeline
    }
}

impl<T: View> Decoder<T> for Handle<T> {
    fn item_in(&self, object: &Arc<Object>, room: Room) -> Result<Item<T>, DecodeError> {
        Ok(Item::new(T::of::<Generated>(object, &self.core().shelf, room)?, object.clone()))
    }

    fn report(&self, error: &DecodeError) {
        self.core().undecodable::<T>(error);
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Self { lifeline: self.lifeline.clone(), view: PhantomData }
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.lifeline.core();
        write!(f, "Informer({}, {})", core.resource, core.selection)
    }
}
