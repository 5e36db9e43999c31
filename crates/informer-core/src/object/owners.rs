//! The owner that controls an object.

use super::{DecodeError, Object};
use crate::Uid;

impl Object {
    /// The uid of the owner that controls the object: that of the owner reference with `controller: true`. Reads the
    /// metadata at each call.
    ///
    /// # Errors
    ///
    /// When the owner references are malformed, or the bytes are not available from their storage.
    pub fn controller_uid(&self) -> Result<Option<Uid>, DecodeError> {
        let uid = self.encoding.controller_uid(&self.bytes()?);
        let uid = uid.map_err(|unfit| self.unreadable("an owned object", unfit.0))?;
        Ok(uid.as_deref().map(Uid::new))
    }
}
