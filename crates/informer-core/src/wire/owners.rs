//! Reads only the owners of an object.

use serde::Deserialize;

use super::ScanError;
use super::cursor::{Cursor, Fault};
use super::scan::enter_metadata;

/// The part of an owner reference that says who controls the object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reference {
    pub(crate) uid: String,
    #[serde(default)]
    pub(crate) api_version: String,
    #[serde(default)]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    controller: Option<bool>,
}

/// The uid of the owner that controls an object: that of the owner reference with `controller: true`.
///
/// ```
/// use informer_core::wire;
///
/// let json = br#"{"metadata":{"name":"cart-1","ownerReferences":[{"uid":"7","controller":true}]}}"#;
/// assert_eq!(wire::controller_uid(json)?.as_deref(), Some("7"));
/// # Ok::<(), wire::ScanError>(())
/// ```
///
/// # Errors
///
/// When the bytes are not an object with metadata, or the owner references are malformed.
pub fn controller_uid(json: &[u8]) -> Result<Option<String>, ScanError> {
    Ok(controller(json)?.map(|owner| owner.uid))
}

/// The reference to the owner that controls an object.
pub(crate) fn controller(json: &[u8]) -> Result<Option<Reference>, ScanError> {
    let mut cursor = Cursor::new(json);
    let mut metadata = enter_metadata(&mut cursor)?;
    while let Some(member) = cursor.next_member(&mut metadata)? {
        let value = cursor.skip_value()?;
        if *member.bytes() != *b"ownerReferences" {
            continue;
        }
        let references = serde_json::from_slice::<Option<Vec<Reference>>>(value);
        let malformed = |_| Fault { what: "the owner references are malformed", at: cursor.at() };
        let mut references = references.map_err(malformed)?.into_iter().flatten();
        return Ok(references.find(|owner| owner.controller == Some(true)));
    }
    Ok(None)
}
