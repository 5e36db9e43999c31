//! Validates definitions, in part.

use serde_json::{Value, json};

use crate::object::Meta;
use crate::refusal::FieldError;

/// The errors of a definition, and of its change if it existed before.
pub(crate) fn errors(before: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let spec = &object["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut errors = Vec::new();
    let (plural, group, name) = (text(&spec["names"]["plural"]), text(&spec["group"]), Meta(object).name());
    if before.is_none() && name != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", json!(name), why));
    }
    let required = |field: &str, value: &Value| {
        let empty = value.as_str().unwrap_or_default().is_empty();
        empty.then(|| FieldError::required(format!("spec.{field}"), ""))
    };
    errors.extend(required("group", &spec["group"]));
    match spec["scope"].as_str() {
        None | Some("") => errors.push(FieldError::required("spec.scope", "")),
        Some("Namespaced" | "Cluster") => {}
        Some(other) => {
            errors.push(FieldError::unsupported("spec.scope", json!(other), &["Cluster", "Namespaced"]));
        }
    }
    errors.extend(version_errors(&spec["versions"]));
    for name in ["plural", "singular", "kind", "listKind"] {
        errors.extend(required(&format!("names.{name}"), &spec["names"][name]));
    }
    errors.extend(common_schema_error(&spec["versions"]));
    if let Some(then) = before.map(|before| &before["spec"]) {
        for (field, then, now) in [
            ("spec.group", &then["group"], &spec["group"]),
            ("spec.scope", &then["scope"], &spec["scope"]),
            ("spec.names.kind", &then["names"]["kind"], &spec["names"]["kind"]),
            ("spec.names.plural", &then["names"]["plural"], &spec["names"]["plural"]),
        ] {
            if then != now {
                errors.push(FieldError::invalid(field, now, "field is immutable"));
            }
        }
    }
    errors.extend(stored_version_errors(object));
    errors
}

/// The real server treats a schema that all versions share as a schema of the whole definition.
fn is_common(versions: &[Value]) -> bool {
    versions.windows(2).all(|pair| pair[0]["schema"] == pair[1]["schema"])
}

fn common_schema_error(versions: &Value) -> Option<FieldError> {
    let versions = versions.as_array()?;
    let schema = &versions.first()?["schema"]["openAPIV3Schema"];
    let wrong = schema.is_object() && schema["type"] != "object" && is_common(versions);
    let field = "spec.validation.openAPIV3Schema.type";
    wrong.then(|| FieldError::required(field, "must not be empty at the root"))
}

/// A version as the real server prints it: with the names of the Go structure, without parts that all versions share.
fn shown(version: &Value) -> String {
    let flag = |name: &str| version[name] == true;
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":null,\
         \"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
        version["name"],
        flag("served"),
        flag("storage"),
        flag("deprecated"),
        version["deprecationWarning"]
    )
}

/// A version that objects may be stored in must not be removed.
fn stored_version_errors(object: &Value) -> Vec<FieldError> {
    let stored = object["status"]["storedVersions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if stored.is_empty() {
        let why = "must have at least one stored version";
        return vec![FieldError::invalid("status.storedVersions", "null", why)];
    }
    let versions = object["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_gone = |stored: &Value| versions.iter().all(|version| version["name"] != *stored);
    let gone = stored.iter().enumerate().filter(|(_, stored)| is_gone(stored));
    gone.map(|(at, stored)| {
        let name = stored.as_str().unwrap_or_default();
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
             until a storage migration ensures no data remains persisted in {name} and removes {name} from \
             status.storedVersions"
        );
        FieldError::invalid(format!("status.storedVersions[{at}]"), stored, &why)
    })
    .collect()
}

fn version_errors(versions: &Value) -> Vec<FieldError> {
    let versions = versions.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut errors = Vec::new();
    for (at, version) in versions.iter().enumerate() {
        let schema = &version["schema"]["openAPIV3Schema"];
        if !schema.is_object() {
            errors.push(FieldError::required(format!("spec.versions[{at}].schema.openAPIV3Schema"), ""));
        } else if schema["type"] != "object" && !is_common(versions) {
            let field = format!("spec.versions[{at}].schema.openAPIV3Schema.type");
            errors.push(FieldError::required(field, "must not be empty at the root"));
        }
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        let shown: Vec<String> = versions.iter().map(shown).collect();
        errors.push(FieldError::invalid("spec.versions", format!("[{}]", shown.join(",")), why));
    }
    errors
}
