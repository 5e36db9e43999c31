//! The resources that a CustomResourceDefinition declares.

use serde_json::Value;

use crate::{Column, Columns, Resource, SelectableField, Subresource};

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

impl Resource {
    /// The resources that a CustomResourceDefinition declares: one for each served version, the preferred version first.
    ///
    /// ```
    /// let definition = serde_json::json!({"spec": {
    ///     "group": "example.com",
    ///     "names": {"plural": "shops", "kind": "Shop", "shortNames": ["sh"]},
    ///     "versions": [{"name": "v1", "served": true}, {"name": "v2", "served": true}, {"name": "v3", "served": false}],
    /// }});
    /// let resources = kube_table::Resource::defined_by(&definition);
    /// let versions: Vec<&str> = resources.iter().map(|resource| &*resource.version).collect();
    /// assert_eq!(versions, ["v2", "v1"]);
    /// ```
    pub fn defined_by(definition: &Value) -> Vec<Self> {
        let spec = &definition["spec"];
        let mut served: Vec<&Value> = spec["versions"].as_array().into_iter().flatten().collect();
        served.retain(|version| version["served"] == true);
        served
            .sort_by_key(|version| std::cmp::Reverse(priority(version["name"].as_str().unwrap_or_default())));
        served.into_iter().map(|version| resource(spec, version)).collect()
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

/// The place of a version among those of its group, the preferred one greatest.
///
/// ```
/// assert!(kube_table::version_priority("v1") > kube_table::version_priority("v2beta1"));
/// ```
pub fn version_priority(version: &str) -> impl Ord + use<> {
    priority(version)
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
