//! How a consumer looks at an object: as a type of its own, or as it is.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::{DecodeError, Object};

/// A type as which objects can be looked at (design D1: one stored form, many views).
///
/// Every deserializable type is one: a `Pod`, a `serde_json::Value`, a struct of the three fields that matter.
/// [`Object`] itself is one too: no decoding at all.
pub trait View: Send + Sync + Sized + 'static {
    /// The object as this type; shared with others who hold it.
    ///
    /// # Errors
    ///
    /// When the object does not fit the type.
    fn of(object: &Arc<Object>) -> Result<Arc<Self>, DecodeError>;

    /// As [`View::of`], and keeps the value for as long as the object version lives.
    ///
    /// # Errors
    ///
    /// When the object does not fit the type.
    fn kept(object: &Arc<Object>) -> Result<Arc<Self>, DecodeError>;

    /// Looks at an object without sharing it.
    ///
    /// # Errors
    ///
    /// When the object does not fit the type.
    fn with<R>(object: &Object, look: impl FnOnce(&Self) -> R) -> Result<R, DecodeError>;

    /// As [`View::with`], and keeps the value for as long as the object version lives.
    ///
    /// # Errors
    ///
    /// When the object does not fit the type.
    fn with_kept<R>(object: &Object, look: impl FnOnce(&Self) -> R) -> Result<R, DecodeError>;
}

impl<T: DeserializeOwned + Send + Sync + 'static> View for T {
    fn of(object: &Arc<Object>) -> Result<Arc<Self>, DecodeError> {
        object.decode()
    }

    fn kept(object: &Arc<Object>) -> Result<Arc<Self>, DecodeError> {
        object.decode_and_keep()
    }

    fn with<R>(object: &Object, look: impl FnOnce(&Self) -> R) -> Result<R, DecodeError> {
        object.decode().map(|value| look(&value))
    }

    fn with_kept<R>(object: &Object, look: impl FnOnce(&Self) -> R) -> Result<R, DecodeError> {
        object.decode_and_keep().map(|value| look(&value))
    }
}

impl View for Object {
    fn of(object: &Arc<Object>) -> Result<Arc<Self>, DecodeError> {
        Ok(object.clone())
    }

    fn kept(object: &Arc<Object>) -> Result<Arc<Self>, DecodeError> {
        Ok(object.clone())
    }

    fn with<R>(object: &Object, look: impl FnOnce(&Self) -> R) -> Result<R, DecodeError> {
        Ok(look(object))
    }

    fn with_kept<R>(object: &Object, look: impl FnOnce(&Self) -> R) -> Result<R, DecodeError> {
        Ok(look(object))
    }
}
