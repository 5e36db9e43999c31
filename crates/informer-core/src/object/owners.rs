//! The owner that controls an object.

use serde::Deserialize;

use super::{DecodeError, Object};
use crate::Uid;

/// The part of an object that names its owners.
#[derive(Deserialize)]
struct Owned {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default, rename = "ownerReferences")]
    owners: Option<Vec<Reference>>,
}

#[derive(Deserialize)]
struct Reference {
    uid: String,
    #[serde(default)]
    controller: Option<bool>,
}

impl Object {
    /// The uid of the owner that controls the object: that of the owner reference with `controller: true`. Decodes the
    /// references at each call.
    ///
    /// # Errors
    ///
    /// When the owner references are undecodable, or the bytes are not available from their storage.
    pub fn controller_uid(&self) -> Result<Option<Uid>, DecodeError> {
        let (Owned { metadata }, _) = self.read_as::<Owned>()?;
        let mut owners = metadata.owners.into_iter().flatten();
        let controller = owners.find(|owner| owner.controller == Some(true));
        Ok(controller.map(|owner| Uid::new(&owner.uid)))
    }
}
