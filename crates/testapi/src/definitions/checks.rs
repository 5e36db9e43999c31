//! What is wrong with a definition, of the little that is checked.

use serde_json::{Value, json};

use crate::refusal::FieldError;
use crate::write::Meta;

/// What is wrong with a definition, and with what has become of the one before.
pub(crate) fn errors(before: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let spec = &object["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut errors = Vec::new();
    let (plural, group, name) = (text(&spec["names"]["plural"]), text(&spec["group"]), Meta(object).name());
    if name != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", json!(name), why));
    }
    for (field, value) in [
        ("spec.group", &spec["group"]),
        ("spec.names.plural", &spec["names"]["plural"]),
        ("spec.names.kind", &spec["names"]["kind"]),
    ] {
        if value.as_str().unwrap_or_default().is_empty() {
            errors.push(FieldError::required(field, ""));
        }
    }
    match spec["scope"].as_str() {
        None | Some("") => errors.push(FieldError::required("spec.scope", "")),
        Some("Namespaced" | "Cluster") => {}
        Some(other) => {
            errors.push(FieldError::unsupported("spec.scope", json!(other), &["Cluster", "Namespaced"]));
        }
    }
    errors.extend(version_errors(&spec["versions"]));
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
    errors
}

fn version_errors(versions: &Value) -> Vec<FieldError> {
    let versions = versions.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut errors = Vec::new();
    for (at, version) in versions.iter().enumerate() {
        let schema = &version["schema"]["openAPIV3Schema"];
        if !schema.is_object() {
            errors.push(FieldError::required(format!("spec.versions[{at}].schema.openAPIV3Schema"), ""));
        } else if schema["type"] != "object" {
            let field = format!("spec.versions[{at}].schema.openAPIV3Schema.type");
            errors.push(FieldError::required(field, "must not be empty at the root"));
        }
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", json!(versions), why));
    }
    errors
}
