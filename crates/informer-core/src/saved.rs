//! A cache while no process runs: what of it is in a file (design D10).

#[cfg(feature = "save")]
mod file;

use std::sync::Arc;

#[cfg(feature = "save")]
pub use file::{Description, LoadError, SaveError, load, save, save_with_note};

use crate::store::SourcePoint;
use crate::{ContentKey, Object};

/// A loaded file.
#[derive(Debug)]
pub struct Saved {
    /// Where each source resumes.
    pub sources: Vec<SourcePoint>,
    /// The objects, each once, each covered by a source.
    pub objects: Vec<Arc<Object>>,
    /// What was noted of the content when it was saved ([`save_with_note`]).
    pub note: String,
    /// The key of their hashes ([`Store::use_content_key`](crate::Store::use_content_key)).
    pub content_key: ContentKey,
}

impl Saved {
    /// The same, with objects that are decoded without their managed fields ([`Object::skipping_managed_fields`]).
    #[must_use]
    pub fn skipping_managed_fields(self) -> Self {
        let skipping = |object: Arc<Object>| match Arc::try_unwrap(object) {
            Ok(object) => Arc::new(object.skipping_managed_fields()),
            Err(shared) => shared,
        };
        Self { objects: self.objects.into_iter().map(skipping).collect(), ..self }
    }
}
