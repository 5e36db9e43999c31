//! Custom resources: what a CustomResourceDefinition adds to the server.

mod checks;
mod prepare;
mod validation;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use serve::{Column, Columns, Resource, SelectableField, Subresource};

use crate::refusal::FieldError;
use crate::schema::{self, TypeRef};
use crate::store::GroupResource;

pub(crate) use checks::errors;
pub(crate) use prepare::{CLEANUP, fill_in, prepare_create, terminate};

/// A custom resource that is served.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) id: GroupResource,
    /// One resource for each served version, the preferred version first.
    pub(crate) resources: Vec<Arc<Resource>>,
    versions: BTreeMap<Box<str>, Version>,
}

#[derive(Debug, Clone)]
struct Version {
    schema: TypeRef,
    /// The unchanged schema, for OpenAPI.
    given: Value,
    scale: Option<ScalePaths>,
}

/// Where objects of a kind keep the fields of their scale (RFC 6901).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    pub(crate) spec: String,
    pub(crate) status: String,
    pub(crate) selector: Option<String>,
}

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

impl Definition {
    pub(crate) fn schema(&self, version: &str) -> Option<TypeRef> {
        Some(self.versions.get(version)?.schema.clone())
    }

    pub(crate) fn given_schema(&self, version: &str) -> Option<&Value> {
        Some(&self.versions.get(version)?.given)
    }

    /// Everything in an object that its schema does not allow.
    pub(crate) fn object_errors(&self, version: &str, object: &Value) -> Vec<FieldError> {
        self.given_schema(version).map(|schema| validation::errors(schema, object)).unwrap_or_default()
    }

    pub(crate) fn scale(&self, version: &str) -> Option<&ScalePaths> {
        self.versions.get(version)?.scale.as_ref()
    }

    /// The storage version, or else the preferred version.
    pub(crate) fn stored(&self) -> Option<&Arc<Resource>> {
        let is_stored =
            |resource: &&Arc<Resource>| resource.stored_version.as_ref() == Some(&resource.version);
        self.resources.iter().find(is_stored).or_else(|| self.resources.first())
    }

    /// Whether both serve the same versions with the same schemas.
    pub(crate) fn reads_like(&self, other: &Self) -> bool {
        let schemas = |definition: &Self| {
            let versions = definition.versions.iter();
            versions.map(|(name, version)| (name.clone(), version.given.clone())).collect::<Vec<_>>()
        };
        schemas(self) == schemas(other)
    }

    /// Reads a CustomResourceDefinition.
    pub(crate) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
        let mut served: Vec<&Value> = spec["versions"].as_array().into_iter().flatten().collect();
        served.retain(|version| version["served"] == true);
        served
            .sort_by_key(|version| std::cmp::Reverse(priority(version["name"].as_str().unwrap_or_default())));
        let versions = served.iter().map(|version| (text(&version["name"]).into(), Version::read(version)));
        Self {
            id: GroupResource::new(&group, &plural),
            versions: versions.collect(),
            resources: served.iter().map(|version| Arc::new(resource(spec, version))).collect(),
        }
    }
}

impl Version {
    fn read(version: &Value) -> Self {
        let given = version["schema"]["openAPIV3Schema"].clone();
        let scale = &version["subresources"]["scale"];
        let pointer = |name: &str| Some(scale[name].as_str()?.replace('.', "/"));
        let scale = pointer("specReplicasPath").map(|spec| ScalePaths {
            spec,
            status: pointer("statusReplicasPath").unwrap_or_default(),
            selector: pointer("labelSelectorPath"),
        });
        Self { schema: schema::custom(&given), given, scale }
    }
}

fn resource(spec: &Value, version: &Value) -> Resource {
    let text = |value: &Value| -> Box<str> { value.as_str().unwrap_or_default().into() };
    let list = |value: &Value| value.as_array().into_iter().flatten().map(text).collect::<Vec<_>>();
    let names = &spec["names"];
    let mut subresources = Vec::new();
    for name in ["status", "scale"] {
        if version["subresources"][name].is_object() {
            let scale = || ("autoscaling".into(), "v1".into(), "Scale".into());
            subresources.push(Subresource {
                name: name.into(),
                group_version_kind: (name == "scale").then(scale),
                verbs: ["get", "patch", "update"].map(Into::into).to_vec(),
            });
        }
    }
    let kind = text(&names["kind"]);
    let list_kind = names["listKind"].as_str().map_or_else(|| format!("{kind}List").into(), Into::into);
    let mut versions = spec["versions"].as_array().into_iter().flatten();
    let stored = versions.find(|version| version["storage"] == true).unwrap_or(version);
    let stored = text(&stored["name"]);
    let singular = names["singular"].as_str().map_or_else(|| kind.to_lowercase().into(), Into::into);
    Resource {
        group: text(&spec["group"]),
        version: text(&version["name"]),
        plural: text(&names["plural"]),
        singular,
        kind,
        list_kind,
        namespaced: spec["scope"] == "Namespaced",
        short_names: list(&names["shortNames"]),
        categories: list(&names["categories"]),
        verbs: VERBS.map(Into::into).to_vec(),
        subresources,
        selectable: version["selectableFields"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(selectable)
            .collect(),
        columns: columns(version),
        typed_items: true,
        stored_version: Some(stored),
    }
}

fn selectable(field: &Value) -> Option<SelectableField> {
    let label = field["jsonPath"].as_str()?.trim_start_matches('.');
    let pointer = format!("/{}", label.replace('.', "/")).into();
    Some(SelectableField { label: label.into(), pointer, missing: "".into() })
}

/// The columns of a version; a version that declares none has the server's default columns.
fn columns(version: &Value) -> Columns {
    let text = |value: &Value| -> Box<str> { value.as_str().unwrap_or_default().into() };
    let declared = version["additionalPrinterColumns"].as_array().map(Vec::as_slice).unwrap_or_default();
    if declared.is_empty() {
        return Columns::BuiltIn;
    }
    let columns = declared.iter().map(|column| Column {
        name: text(&column["name"]),
        kind: text(&column["type"]),
        format: text(&column["format"]),
        description: text(&column["description"]),
        priority: column["priority"].as_i64().and_then(|at| at.try_into().ok()).unwrap_or(0),
        json_path: text(&column["jsonPath"]),
    });
    Columns::Declared(columns.collect())
}

/// `v2` before `v1` before `v2beta1` before `v1alpha2` before all other names, which are sorted alphabetically.
fn priority(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let other = || (0, 0, 0, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else { return other() };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let Ok(major) = rest[..digits].parse() else { return other() };
    let (stage, minor) =
        match rest[digits..].split_at(rest[digits..].find(|c: char| c.is_ascii_digit()).unwrap_or(0)) {
            ("", "") => (3, "0"),
            ("beta", minor) => (2, minor),
            ("alpha", minor) => (1, minor),
            _ => return other(),
        };
    match minor.parse() {
        Ok(minor) => (stage, major, minor, std::cmp::Reverse(String::new())),
        Err(_) => other(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_sorted_by_their_stability_then_by_their_number() {
        let mut versions = ["foo10", "v1", "v1beta2", "v10", "v2alpha1", "foo1", "v11beta2", "v2"];
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v11beta2", "v1beta2", "v2alpha1", "foo1", "foo10"]);
    }
}
