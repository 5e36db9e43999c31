//! The fields of custom resources that typed clients decode as base64: those with `format: byte` in the schema of their definition.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::hide::secret::may_have_mark;

/// Where such fields are below a field.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Encoded {
    is_one: bool,
    members: BTreeMap<String, Encoded>,
    /// In each element of a list, or in each member of a map.
    each: Option<Box<Encoded>>,
}

impl Encoded {
    /// `None` where there are none. JSON is at most 128 levels deep, or it is not read.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let members = schema["properties"].as_object().into_iter().flatten();
        let members: BTreeMap<String, Self> =
            members.filter_map(|(name, schema)| Some((name.clone(), Self::of(schema)?))).collect();
        let each = ["items", "additionalProperties"].into_iter().find_map(|name| Self::of(schema.get(name)?));
        let is_one = schema["type"] == "string" && schema["format"] == "byte";
        let has_some = is_one || each.is_some() || !members.is_empty();
        has_some.then(|| Self { is_one, members, each: each.map(Box::new) })
    }

    /// Hidden values become the base64 of their marks.
    pub(super) fn encode_marks(&self, value: &mut Value) {
        match value {
            Value::Array(list) => {
                list.iter_mut().for_each(|it| self.each.iter().for_each(|each| each.encode_marks(it)));
            }
            Value::Object(map) => {
                for (name, value) in map {
                    if let Some(below) = self.members.get(name).or(self.each.as_deref()) {
                        below.encode_marks(value);
                    }
                }
            }
            value if self.is_one => encode(value),
            _ => {}
        }
    }
}

/// A text that is encoded already has no mark.
pub(super) fn encode(value: &mut Value) {
    if let Value::String(text) = value
        && may_have_mark(text.as_bytes())
    {
        *text = BASE64_STANDARD.encode(&*text);
    }
}
