//! The encoding in which an object's bytes arrived.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use informer_protobuf::{Kind, Owner};
use serde::de::DeserializeOwned;

use super::bytes::ObjectBytes;
use super::weight;
use crate::wire;

/// The encoding of an object's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// The object's JSON, with its `kind` and `apiVersion`.
    Json,
    /// The message of this kind, without an envelope.
    Protobuf(Kind),
}

/// The bytes do not decode. The reason never holds any of the object's content.
#[derive(Debug)]
pub(super) struct Unfit(pub(super) String);

impl Encoding {
    /// Decodes the bytes as a `T`. Also returns about how many bytes of the heap the value refers to. A panic in the
    /// `Deserialize` of `T` is an error of these bytes alone.
    pub(super) fn decode<T: DeserializeOwned + 'static>(self, bytes: &[u8]) -> Result<(T, usize), Unfit> {
        let decoded = catch_unwind(AssertUnwindSafe(|| self.decode_unguarded(bytes)));
        decoded.unwrap_or_else(|_| Err(Unfit("its Deserialize panicked".to_owned())))
    }

    fn decode_unguarded<T: DeserializeOwned + 'static>(self, bytes: &[u8]) -> Result<(T, usize), Unfit> {
        match self {
            Self::Json => {
                let (value, heap) =
                    weight::from_json(bytes).map_err(|error| Unfit(reason_without_content(&error)))?;
                let heap = weight::exact(&value).unwrap_or(heap);
                Ok((value, heap))
            }
            Self::Protobuf(kind) => {
                let (value, heap) = informer_protobuf::from_slice_weighed(kind, bytes)
                    .map_err(|error| Unfit(error.to_string()))?;
                let heap = weight::exact(&value).unwrap_or(heap);
                Ok((value, heap))
            }
        }
    }

    /// The bytes as JSON.
    pub(super) fn json(self, bytes: ObjectBytes) -> Result<ObjectBytes, Unfit> {
        match self {
            Self::Json => Ok(bytes),
            Self::Protobuf(kind) => {
                let json = informer_protobuf::to_json(kind, &bytes);
                json.map(Into::into).map_err(|error| Unfit(error.to_string()))
            }
        }
    }
}

impl Encoding {
    /// Passes the owner that controls the object to `read`, and returns its result.
    pub(super) fn controller<R>(
        self,
        bytes: &[u8],
        read: impl FnOnce(Owner<'_>) -> R,
    ) -> Result<Option<R>, Unfit> {
        match self {
            Self::Json => {
                let reference = wire::controller(bytes).map_err(|error| Unfit(error.to_string()))?;
                Ok(reference.map(|reference| {
                    read(Owner {
                        api_version: &reference.api_version,
                        kind: &reference.kind,
                        name: &reference.name,
                        uid: &reference.uid,
                    })
                }))
            }
            Self::Protobuf(_) => {
                let owner = informer_protobuf::scan(bytes).and_then(|metadata| metadata.controller());
                owner.map(|owner| owner.map(read)).map_err(|error| Unfit(error.to_string()))
            }
        }
    }

    /// The bytes of the same object without its managed fields.
    pub(super) fn without_managed_fields(self, bytes: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::Json => wire::without_managed_fields(bytes),
            Self::Protobuf(_) => informer_protobuf::without_managed_fields(bytes),
        }
    }
}

/// serde's message quotes the offending value, which may be a Secret's: return only the kind of error, and the place.
fn reason_without_content(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Io => "reading the bytes failed",
        serde_json::error::Category::Syntax => "it is not well-formed JSON",
        serde_json::error::Category::Data => "a field is missing or has another type than expected",
        serde_json::error::Category::Eof => "its JSON ends early",
    };
    format!("{what} (line {} column {})", error.line(), error.column())
}
