//! How a consumer reads an object: as a type, or undecoded.

use std::sync::Arc;

use informer_protobuf::Kind;
use serde::de::DeserializeOwned;

use crate::{DecodeError, Object, Room, Shelf};

/// A faster way to decode some types than serde. Serde decodes whatever it leaves.
#[doc(hidden)]
pub trait Decode {
    /// The message of an object of this kind as a `T`, and about how many bytes of the heap it refers to; `None` leaves it to
    /// serde, which also has the errors. `skips_managed_fields` leaves out `metadata.managedFields`.
    fn protobuf<T: 'static>(kind: Kind, raw: &[u8], skips_managed_fields: bool) -> Option<(T, usize)>;
}

/// Leaves everything to serde.
#[doc(hidden)]
#[derive(Debug)]
pub struct BySerde;

impl Decode for BySerde {
    fn protobuf<T: 'static>(_: Kind, _: &[u8], _: bool) -> Option<(T, usize)> {
        None
    }
}

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
