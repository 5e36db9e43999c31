//! The states of an object before and after a change, from JSON.

use serde_json::Value;

use crate::hide::secret;

/// The states before and after a change, as the server has them: with secrets.
#[derive(Debug)]
pub struct States {
    pub(crate) old: Option<Value>,
    pub(crate) new: Option<Value>,
}

impl States {
    /// # Errors
    ///
    /// When bytes are not JSON.
    pub fn read(old: Option<&[u8]>, new: Option<&[u8]>) -> Result<Self, Undecodable> {
        let read = |bytes: Option<&[u8]>, side| {
            bytes.map(state).transpose().map_err(|source| Undecodable { side, source })
        };
        Ok(Self { old: read(old, "old")?, new: read(new, "new")? })
    }
}

/// Bytes that are not the JSON of an object.
#[derive(Debug, thiserror::Error)]
#[error("the {side} state is undecodable: {source}")]
pub struct Undecodable {
    side: &'static str,
    source: serde_json::Error,
}

/// A state of the cluster. A text in it that looks like a mark of this program is none.
pub(crate) fn state(json: &[u8]) -> Result<Value, serde_json::Error> {
    let mut state = serde_json::from_slice(json)?;
    if secret::may_have_mark(json) {
        secret::write_out_marks(&mut state);
    }
    Ok(state)
}
