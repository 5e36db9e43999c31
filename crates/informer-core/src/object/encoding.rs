//! In which encoding an object's bytes came.

use std::borrow::Cow;

use serde::Deserialize;

/// How the bytes of an object are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// The object's JSON, with its `kind` and `apiVersion`.
    Json,
}

/// Bytes that do not fit what they were to be read as. Never holds any of the object's content.
#[derive(Debug)]
pub(super) struct Unfit(pub(super) String);

impl Encoding {
    /// The bytes as a `T`.
    pub(super) fn decode<'de, T: Deserialize<'de>>(self, bytes: &'de [u8]) -> Result<T, Unfit> {
        match self {
            Self::Json => {
                serde_json::from_slice(bytes).map_err(|error| Unfit(reason_without_content(&error)))
            }
        }
    }

    /// The bytes as JSON.
    pub(super) fn json(self, bytes: Cow<'_, [u8]>) -> Result<Cow<'_, [u8]>, Unfit> {
        match self {
            Self::Json => Ok(bytes),
        }
    }
}

/// serde's message quotes the offending value, which may be a Secret's: say only what kind of error it was, and where.
fn reason_without_content(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Io => "it could not be read",
        serde_json::error::Category::Syntax => "it is not well-formed JSON",
        serde_json::error::Category::Data => "a field is missing or has another type than expected",
        serde_json::error::Category::Eof => "its JSON ends early",
    };
    format!("{what} (line {} column {})", error.line(), error.column())
}
