//! How a consumer looks at an object: as a type of its own, or as it is.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::{DecodeError, Object, Room, Shelf};

/// A type as which objects can be looked at (design D1: one stored form, many views).
///
/// Every deserializable type is one: a `Pod`, a `serde_json::Value`, a struct of the three fields that matter.
/// [`Object`] itself is one too: no decoding at all.
pub trait View: Send + Sync + Sized + 'static {
    /// The object as this type: what is hot, or a freshly decoded value, which is kept as `room` says. Informers call it;
    /// programs read through a lister, a snapshot, an index or a subscription.
    ///
    /// # Errors
    ///
    /// When the object does not fit the type.
    #[doc(hidden)]
    fn of(object: &Arc<Object>, shelf: &Arc<Shelf>, room: Room) -> Result<Arc<Self>, DecodeError>;
}

impl<T: DeserializeOwned + Send + Sync + 'static> View for T {
    fn of(object: &Arc<Object>, shelf: &Arc<Shelf>, room: Room) -> Result<Arc<Self>, DecodeError> {
        shelf.decode(object, room)
    }
}

impl View for Object {
    fn of(object: &Arc<Object>, _: &Arc<Shelf>, _: Room) -> Result<Arc<Self>, DecodeError> {
        Ok(object.clone())
    }
}
