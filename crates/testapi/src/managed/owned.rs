//! The fields of an owner. They stay encoded until they are needed, because most writes touch few owners.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::set::FieldSet;

/// A set of fields, encoded or decoded.
#[derive(Debug, Clone)]
pub(super) enum Owned {
    /// `fieldsV1` that this server has written.
    Encoded(Value),
    Set(FieldSet),
}

impl Owned {
    pub(super) fn set(&self) -> Cow<'_, FieldSet> {
        match self {
            // Malformed fields are owned by nobody.
            Self::Encoded(fields) => Cow::Owned(FieldSet::decode(fields).unwrap_or_default()),
            Self::Set(set) => Cow::Borrowed(set),
        }
    }

    pub(super) fn encode(self) -> Value {
        match self {
            Self::Encoded(fields) => fields,
            Self::Set(set) => set.encode(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Encoded(fields) => fields.as_object().is_none_or(Map::is_empty),
            Self::Set(set) => set.is_empty(),
        }
    }

    /// Whether any of these fields is owned.
    pub(super) fn has_any(&self, fields: &FieldSet) -> bool {
        match self {
            Self::Encoded(encoded) => fields.is_any_in(encoded),
            Self::Set(set) => !set.intersection(fields).is_empty(),
        }
    }
}
