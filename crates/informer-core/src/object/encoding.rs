//! In which encoding an object's bytes came.

use std::borrow::Cow;

use informer_protobuf::Kind;
use serde::Deserialize;

use crate::wire;

/// How the bytes of an object are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// The object's JSON, with its `kind` and `apiVersion`.
    Json,
    /// The message of this kind, without an envelope.
    Protobuf(Kind),
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
            Self::Protobuf(kind) => {
                informer_protobuf::from_slice(kind, bytes).map_err(|error| Unfit(error.to_string()))
            }
        }
    }

    /// The bytes as JSON.
    pub(super) fn json(self, bytes: Cow<'_, [u8]>) -> Result<Cow<'_, [u8]>, Unfit> {
        match self {
            Self::Json => Ok(bytes),
            Self::Protobuf(kind) => {
                let json = informer_protobuf::to_json(kind, &bytes);
                json.map(Cow::Owned).map_err(|error| Unfit(error.to_string()))
            }
        }
    }
}

impl Encoding {
    /// The bytes of the same object without its managed fields.
    pub(super) fn without_managed_fields(self, bytes: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::Json => wire::without_managed_fields(bytes),
            Self::Protobuf(_) => informer_protobuf::without_managed_fields(bytes),
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
