//! Which objects typed views could not decode: each is reported once per version and type.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use informer_core::{DecodeError, ObjectKey, ResourceVersion};

/// The undecodable objects that were reported, by key and type.
#[derive(Default)]
pub(crate) struct Undecodable(Mutex<HashMap<(ObjectKey, TypeId), ResourceVersion>>);

/// A type that fits no object at all must not fill the memory: after so many the list starts anew.
const MOST_REMEMBERED: usize = 4096;

impl Undecodable {
    /// Whether this error is about a version that was not reported yet.
    pub(crate) fn is_new<T: 'static>(&self, error: &DecodeError) -> bool {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let version = error.resource_version();
        let key = (error.key().clone(), TypeId::of::<T>());
        if reported.get(&key) == Some(version) {
            return false;
        }
        if reported.len() >= MOST_REMEMBERED && !reported.contains_key(&key) {
            reported.clear();
        }
        reported.insert(key, version.clone());
        true
    }
}
