//! A cache that was saved to a file (design D10).

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
    /// The points from which the sources resume.
    pub sources: Vec<SourcePoint>,
    /// The objects, each once. A source covers each of them.
    pub objects: Vec<Arc<Object>>,
    /// The note that was saved with the content ([`save_with_note`]).
    pub note: String,
    /// The key of the objects' content hashes ([`Store::use_content_key`](crate::Store::use_content_key)).
    pub content_key: ContentKey,
}

impl Saved {
    /// The same, with objects that skip their managed fields when they are decoded ([`Object::skipping_managed_fields`]).
    #[must_use]
    pub fn skipping_managed_fields(self) -> Self {
        let skipping = |object: Arc<Object>| match Arc::try_unwrap(object) {
            Ok(object) => Arc::new(object.skipping_managed_fields()),
            Err(shared) => shared,
        };
        Self { objects: self.objects.into_iter().map(skipping).collect(), ..self }
    }
}
