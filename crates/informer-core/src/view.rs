//! How a consumer reads an object: as a type, or undecoded.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::{Decode, DecodeError, Object, Room, Shelf};

/// A type as which objects can be read (design D1: one stored form, many views).
///
/// Every deserializable type is a view: a `Pod`, a `serde_json::Value`, a struct of three fields. [`Object`] itself is also a
/// view, which needs no decoding.
pub trait View: Send + Sync + Sized + 'static {
    /// The object as this type: the hot value, or a freshly decoded one, which is kept as `room` says. Informers call this.
    /// Programs read through a lister, a snapshot, an index or a subscription.
    ///
    /// # Errors
    ///
    /// When the object does not decode as the type.
    #[doc(hidden)]
    fn of<D: Decode>(object: &Arc<Object>, shelf: &Arc<Shelf>, room: Room) -> Result<Arc<Self>, DecodeError>;
}

impl<T: DeserializeOwned + Send + Sync + 'static> View for T {
    fn of<D: Decode>(object: &Arc<Object>, shelf: &Arc<Shelf>, room: Room) -> Result<Arc<Self>, DecodeError> {
        shelf.decode_by::<Self, D>(object, room)
    }
}

impl View for Object {
    fn of<D: Decode>(object: &Arc<Object>, _: &Arc<Shelf>, _: Room) -> Result<Arc<Self>, DecodeError> {
        Ok(object.clone())
    }
}
