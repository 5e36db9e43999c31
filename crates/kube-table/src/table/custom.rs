//! Columns that a CustomResourceDefinition declares.

use serde_json::{Number, Value, json};

use super::row::Row;
use super::time;
use crate::Column;
use crate::json_path::JsonPath;

/// A declared column, ready to print.
#[derive(Debug)]
pub(super) struct CustomColumn {
    kind: Box<str>,
    /// `None` if the path is unsupported: the cells are empty.
    path: Option<JsonPath>,
}

/// The definition of a column, in the form of tables.
pub(super) fn definition(column: &Column) -> Value {
    let description = if column.description.is_empty() {
        format!("Custom resource definition column (in JSONPath format): {}", column.json_path)
    } else {
        column.description.to_string()
    };
    json!({
        "name": column.name,
        "type": column.kind,
        "format": column.format,
        "description": description,
        "priority": column.priority,
    })
}

impl CustomColumn {
    pub(super) fn new(column: &Column) -> Self {
        Self { kind: column.kind.clone(), path: JsonPath::parse(&column.json_path) }
    }

    /// The column of a definition that declares none.
    pub(super) fn age() -> Self {
        Self { kind: "date".into(), path: JsonPath::parse(".metadata.creationTimestamp") }
    }

    /// The first value that the path finds, if it is of the column's type.
    pub(super) fn cell(&self, row: &Row<'_>) -> Value {
        let found = self.path.as_ref().and_then(|path| path.first(row.object));
        let Some(value) = found.filter(|value| !value.is_null()) else {
            return Value::Null;
        };
        match &*self.kind {
            "integer" => integer(value).map_or(Value::Null, Value::from),
            "number" => value.as_f64().and_then(Number::from_f64).map_or(Value::Null, Value::Number),
            "boolean" => value.as_bool().map_or(Value::Null, Value::from),
            "string" => match value {
                Value::String(text) => text.as_str().into(),
                other => other.to_string().into(),
            },
            "date" => match value.as_str() {
                None => Value::Null,
                Some(text) => time::parse(text)
                    .map_or_else(|| "<invalid>".to_string(), |time| time::between(time, row.now))
                    .into(),
            },
            _ => Value::Null,
        }
    }
}

fn integer(value: &Value) -> Option<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the fraction is meant to go; too large ones saturate"
    )]
    value.as_i64().or_else(|| value.as_f64().map(|number| number as i64))
}
