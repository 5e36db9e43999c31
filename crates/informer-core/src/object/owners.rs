//! The owner that controls an object.

use informer_protobuf::Owner;

use super::{DecodeError, Object};
use crate::Uid;

/// The owner that controls an object, as its owner reference names it. Any of the texts may be empty: a server demands all,
/// other sources of objects may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerReference {
    /// The group and version that the writer of the reference used.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The name. A namespaced owner is in the namespace of what it owns.
    pub name: String,
    /// The uid.
    pub uid: Uid,
}

impl Object {
    /// The owner that controls the object: that of the owner reference with `controller: true`. Reads the metadata at each
    /// call.
    ///
    /// ```
    /// # use informer_core as informer;
    /// use informer::Object;
    ///
    /// let object = Object::from_json(br#"{"metadata":{"name":"cart-1","ownerReferences":[
    ///     {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"cart","uid":"7","controller":true}]}}"#)?;
    /// let controller = object.controller()?;
    /// assert_eq!(controller.map(|owner| owner.name).as_deref(), Some("cart"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the owner references are malformed, or the bytes are not available from their storage.
    pub fn controller(&self) -> Result<Option<ControllerReference>, DecodeError> {
        self.read_controller(|owner| ControllerReference {
            api_version: owner.api_version.to_owned(),
            kind: owner.kind.to_owned(),
            name: owner.name.to_owned(),
            uid: Uid::new(owner.uid),
        })
    }

    /// The uid of that owner.
    ///
    /// # Errors
    ///
    /// As [`Object::controller`].
    pub fn controller_uid(&self) -> Result<Option<Uid>, DecodeError> {
        self.read_controller(|owner| Uid::new(owner.uid))
    }

    fn read_controller<R>(&self, read: impl FnOnce(Owner<'_>) -> R) -> Result<Option<R>, DecodeError> {
        let owner = self.encoding.controller(&self.bytes()?, read);
        owner.map_err(|unfit| self.unreadable("an owned object", unfit.0))
    }
}
