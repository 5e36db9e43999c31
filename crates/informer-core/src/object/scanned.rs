//! Makes objects from the scan of their bytes.

use std::borrow::Cow;

use informer_protobuf::Kind;

use super::{Arrival, Encoding, Object, PlainStorage, Storage};
use crate::wire::{ScanError, ScannedMessage, ScannedObject};

impl ScannedObject<'_> {
    /// Makes an object with these bytes: those that were scanned, or the same without their managed fields.
    ///
    /// # Errors
    ///
    /// When the key or the labels are invalid.
    pub fn into_object(self, json: &[u8]) -> Result<Object, ScanError> {
        self.into_object_with(Cow::Borrowed(json), Arrival::AtRest(&PlainStorage))
    }

    /// As [`ScannedObject::into_object`], for an item of a list. An item without its own `kind` and `apiVersion` gets the
    /// list's, in the place where a watch event of the same object has them.
    ///
    /// # Errors
    ///
    /// As [`ScannedObject::into_object`] and [`ScannedObject::type_meta`].
    pub fn into_object_of(self, json: &[u8], api_version: &str, kind: &str) -> Result<Object, ScanError> {
        self.into_object_kept(json, api_version, kind, &PlainStorage)
    }

    /// As [`ScannedObject::into_object_of`], with the bytes kept in `storage`.
    ///
    /// # Errors
    ///
    /// As [`ScannedObject::into_object_of`].
    pub fn into_object_kept(
        self,
        json: &[u8],
        api_version: &str,
        kind: &str,
        storage: &dyn Storage,
    ) -> Result<Object, ScanError> {
        self.into_object_in(json, api_version, kind, Arrival::AtRest(storage))
    }

    pub(crate) fn into_object_in(
        self,
        json: &[u8],
        api_version: &str,
        kind: &str,
        keep: Arrival<'_>,
    ) -> Result<Object, ScanError> {
        let own = self.type_meta()?;
        let mut missing = Vec::new();
        if own.kind.is_none() {
            missing.push(("kind", kind));
        }
        if own.api_version.is_none() {
            missing.push(("apiVersion", api_version));
        }
        self.into_object_with(with_members_first(json, &missing), keep)
    }

    fn into_object_with(self, json: Cow<'_, [u8]>, keep: Arrival<'_>) -> Result<Object, ScanError> {
        let key = self.key()?;
        let labels = self.labels()?;
        let (uid, version) = (self.uid(), self.resource_version());
        Ok(Object::from_parts(key, uid, version, labels, Encoding::Json, json, keep))
    }
}

impl ScannedMessage<'_> {
    /// Keeps the object, with the bytes that were scanned in `storage`.
    ///
    /// # Errors
    ///
    /// When the labels are invalid.
    pub fn into_object(self, kind: Kind, message: &[u8], storage: &dyn Storage) -> Result<Object, ScanError> {
        self.into_object_in(kind, message, Arrival::AtRest(storage))
    }

    pub(crate) fn into_object_in(
        self,
        kind: Kind,
        message: &[u8],
        keep: Arrival<'_>,
    ) -> Result<Object, ScanError> {
        let (uid, version, labels) = (self.uid(), self.resource_version().clone(), self.labels()?);
        let (key, encoding) = (self.into_key(), Encoding::Protobuf(kind));
        Ok(Object::from_parts(key, uid, version, labels, encoding, message.into(), keep))
    }
}

/// Puts members before an object's first one.
fn with_members_first<'j>(json: &'j [u8], members: &[(&str, &str)]) -> Cow<'j, [u8]> {
    let brace = json.iter().position(|&byte| byte == b'{');
    let Some((before, after)) = brace.and_then(|brace| json.split_at_checked(brace + 1)) else {
        return Cow::Borrowed(json);
    };
    if members.is_empty() {
        return Cow::Borrowed(json);
    }
    let added: usize = members.iter().map(|(name, value)| name.len() + value.len() + r#""":"","#.len()).sum();
    let mut whole = Vec::with_capacity(json.len() + added);
    whole.extend_from_slice(before);
    for (name, value) in members {
        whole.extend_from_slice(format!("{}:{},", quoted(name), quoted(value)).as_bytes());
    }
    whole.extend_from_slice(after);
    Cow::Owned(whole)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
