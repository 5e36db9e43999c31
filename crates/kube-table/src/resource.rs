//! The description of a resource in one version of the API.

use serde_json::Value;

/// One resource in one version of the API. A resource that is served in several versions has several of these and one
/// collection.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// The group of the API, empty for the core.
    pub group: Box<str>,
    /// The version of the API: `v1`.
    pub version: Box<str>,
    /// The name in paths: `pods`.
    pub plural: Box<str>,
    /// The name of one: `pod`.
    pub singular: Box<str>,
    /// The kind of an object: `Pod`.
    pub kind: Box<str>,
    /// The kind of a list: `PodList`.
    pub list_kind: Box<str>,
    /// Whether objects are in a namespace.
    pub namespaced: bool,
    /// Short names for people: `po`.
    pub short_names: Vec<Box<str>>,
    /// Categories for people: `all`.
    pub categories: Vec<Box<str>>,
    /// The verbs that discovery lists: `get`, `list`, `watch`, `create` ...
    pub verbs: Vec<Box<str>>,
    /// The subresources of an object: `status`, `scale`.
    pub subresources: Vec<Subresource>,
    /// Fields that a field selector may name, besides `metadata.name` and `metadata.namespace`.
    pub selectable: Vec<SelectableField>,
    /// The columns of its tables.
    pub columns: Columns,
    /// Whether the items of a list carry kind and version, as those of custom resources do.
    pub typed_items: bool,
    /// The storage version, if it is not the preferred one.
    pub stored_version: Option<Box<str>>,
}

/// A subresource: `pods/log`, `deployments/scale`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subresource {
    /// The last part of the path: `scale`.
    pub name: Box<str>,
    /// Group, version and kind of its requests and responses, if not the resource's own.
    pub group_version_kind: Option<(Box<str>, Box<str>, Box<str>)>,
    /// The verbs that it supports.
    pub verbs: Vec<Box<str>>,
}

/// A field that a field selector may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectableField {
    /// Its name in selectors: `spec.nodeName`.
    pub label: Box<str>,
    /// The path of the value (RFC 6901): `/spec/nodeName`.
    pub pointer: Box<str>,
    /// The value of a missing field: empty for most, `false` for a boolean.
    pub missing: Box<str>,
}

/// The columns of a resource's tables.
#[derive(Debug, Clone, PartialEq)]
pub enum Columns {
    /// The columns that servers print for the built-in kind; name and creation time for a kind without columns of its own.
    BuiltIn,
    /// The columns that a CustomResourceDefinition declares in `additionalPrinterColumns`.
    Declared(Vec<Column>),
}

/// A column of a CustomResourceDefinition.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The head of the column.
    pub name: Box<str>,
    /// `integer`, `number`, `string`, `boolean` or `date`.
    pub kind: Box<str>,
    /// `int32`, `date-time`, `name` ... or empty.
    pub format: Box<str>,
    /// The description.
    pub description: Box<str>,
    /// 0 for columns that are always shown, more for `-o wide`.
    pub priority: i32,
    /// The path of the value: `.spec.replicas`.
    pub json_path: Box<str>,
}

impl Resource {
    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `pods`, `deployments.apps`: the name that servers use in messages.
    pub fn qualified_name(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_string()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Whether discovery lists a verb.
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|allowed| **allowed == *verb)
    }
}

impl SelectableField {
    /// The value of the field in an object, as a field selector compares it.
    pub fn value(&self, object: &Value) -> String {
        match object.pointer(&self.pointer) {
            None | Some(Value::Null) => self.missing.to_string(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }
}
