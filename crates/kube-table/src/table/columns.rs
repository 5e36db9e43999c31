//! The columns of built-in kinds as a server defines them, without their descriptions, which no client shows.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

/// Columns that several tables share, by name, and tables, by resource.
#[derive(Deserialize, Default)]
struct Definitions {
    common: HashMap<String, Value>,
    tables: HashMap<String, Vec<Definition>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Definition {
    Common(String),
    Own(Value),
}

// The file is compiled in and a test parses it: no other file could fail here.
static DEFINITIONS: LazyLock<Definitions> =
    LazyLock::new(|| serde_json::from_str(include_str!("columns.json")).unwrap_or_default());

/// The columns of a resource (`deployments.apps`), if it has its own.
pub(super) fn of(resource: &str) -> Option<Vec<Value>> {
    let definitions = DEFINITIONS.tables.get(resource)?;
    Some(
        definitions
            .iter()
            .map(|definition| match definition {
                Definition::Common(name) => common(name),
                Definition::Own(column) => described(column.clone()),
            })
            .collect(),
    )
}

/// A column that several tables share.
pub(super) fn common(name: &str) -> Value {
    described(DEFINITIONS.common.get(name).cloned().unwrap_or_default())
}

/// Adds the description that every definition has.
fn described(mut column: Value) -> Value {
    column["description"] = "".into();
    column
}

/// All resources that have columns of their own.
#[cfg(test)]
pub(super) fn resources() -> impl Iterator<Item = &'static str> {
    DEFINITIONS.tables.keys().map(String::as_str)
}
