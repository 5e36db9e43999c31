//! The authors of the fields of an object.

use jiff::Timestamp;
use kubediff_history::{Blame, Field, Incarnation, Number, ObjectId, Reader};
use serde_json::Value;

use super::error::AskError;
use super::fields::fields;
use super::names;
use crate::model::lists::Lists;
use crate::model::path::PathPattern;
use crate::model::schema::Schemas;

/// The authors of the fields that the pattern covers, as of a version, or of the newest one.
pub(crate) fn authors(
    reader: &mut Reader,
    incarnation: &Incarnation,
    until: Option<Number>,
    pattern: Option<&PathPattern>,
) -> Result<Blame, AskError> {
    let schema = names::schema(reader, &Schemas::default(), &incarnation.object, incarnation.ended_at)?;
    let lists = Lists::of(&incarnation.object.gvk, schema.as_ref());
    Ok(reader.blame(incarnation, until, &|object: &Value| fields(lists, object, pattern))?)
}

/// The fields of a state, with the paths that their authors have.
pub(crate) fn fields_of(
    reader: &mut Reader,
    object: &ObjectId,
    at: Option<Timestamp>,
    state: &Value,
) -> Result<Vec<Field>, AskError> {
    let schema = names::schema(reader, &Schemas::default(), object, at)?;
    Ok(fields(Lists::of(&object.gvk, schema.as_ref()), state, None))
}
