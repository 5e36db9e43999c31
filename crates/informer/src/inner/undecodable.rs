//! The objects that did not decode as the types of views. Each is reported once per version and type.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use informer_core::{DecodeError, ObjectKey, ResourceVersion};

/// The undecodable objects that were reported, by key and type.
#[derive(Default)]
pub(crate) struct Undecodable(Mutex<HashMap<(ObjectKey, TypeId), ResourceVersion>>);

/// After this many entries the table is cleared, so that a type that fits no object cannot fill the memory.
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
