//! Validates names, with the messages of the real server.

use serde_json::{Value, json};
use serve::Resource;

use crate::refusal::FieldError;
use crate::turn::Target;

const SUBDOMAIN_WORDS: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
     '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_WORDS: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED_WORDS: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
     with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_WORDS: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
     '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
     for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// The errors in the name of an object.
pub(super) fn name_errors(resource: &Resource, name: &str) -> Vec<FieldError> {
    let words = match (&*resource.group, &*resource.plural) {
        ("", "namespaces" | "services") => label(name),
        ("rbac.authorization.k8s.io", _) => path_segment(name),
        _ => subdomain(name),
    };
    words.into_iter().map(|why| FieldError::invalid("metadata.name", json!(name), &why)).collect()
}

/// The errors in labels, annotations, owners and finalizers.
pub(super) fn metadata_errors(target: &Target, object: &Value) -> Vec<FieldError> {
    let metadata = &object["metadata"];
    let mut errors = Vec::new();
    for (name, value) in metadata["labels"].as_object().into_iter().flatten() {
        let invalid = |value: &str, why: &String| FieldError::invalid("metadata.labels", json!(value), why);
        errors.extend(qualified(name).iter().map(|why| invalid(name, why)));
        let value = value.as_str().unwrap_or_default();
        errors.extend(label_value(value).iter().map(|why| invalid(value, why)));
    }
    for (name, _) in metadata["annotations"].as_object().into_iter().flatten() {
        let why = qualified(&name.to_lowercase());
        errors.extend(why.iter().map(|why| FieldError::invalid("metadata.annotations", json!(name), why)));
    }
    errors.extend(owner_errors(&metadata["ownerReferences"]));
    for (at, finalizer) in metadata["finalizers"].as_array().into_iter().flatten().enumerate() {
        let finalizer = finalizer.as_str().unwrap_or_default();
        let field = || format!("metadata.finalizers[{at}]");
        errors.extend(
            qualified(finalizer).iter().map(|why| FieldError::invalid(field(), json!(finalizer), why)),
        );
        // The real server validates these only for some kinds.
        let is_standard = target.definition.is_some()
            || &*target.resource.group == "coordination.k8s.io"
            || finalizer.contains('/');
        if !is_standard && !matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion") {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(field(), json!(finalizer), why));
        }
    }
    errors
}

fn owner_errors(owners: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, owner) in owners.as_array().into_iter().flatten().enumerate() {
        let text = |name: &str| owner[name].as_str().unwrap_or_default();
        let field = |name: &str| format!("metadata.ownerReferences[{at}].{name}");
        let missing = ["apiVersion", "kind", "name", "uid"].into_iter().filter(|name| text(name).is_empty());
        errors.extend(missing.map(|name| FieldError::required(field(name), "must not be empty")));
        let version = text("apiVersion");
        if !version.is_empty() && (version.matches('/').count() > 1 || version.ends_with('/')) {
            let why = "must be <group>/<version> or <version>";
            errors.push(FieldError::invalid(field("apiVersion"), json!(version), why));
        }
    }
    errors
}

fn longer_than(name: &str, most: usize) -> Option<String> {
    (name.len() > most).then(|| format!("must be no more than {most} characters"))
}

fn subdomain(name: &str) -> Vec<String> {
    let fits = name.split('.').all(is_label);
    longer_than(name, 253).into_iter().chain((!fits).then(|| SUBDOMAIN_WORDS.into())).collect()
}

/// A DNS label, as for names of namespaces and services.
fn label(name: &str) -> Vec<String> {
    if name.contains('.') && name.split('.').all(is_label) {
        return vec!["must not contain dots".into()];
    }
    longer_than(name, 63).into_iter().chain((!is_label(name)).then(|| LABEL_WORDS.into())).collect()
}

fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ['/', '%'].into_iter().filter(|c| name.contains(*c)).map(|c| format!("may not contain '{c}'")).collect()
}

fn qualified(name: &str) -> Vec<String> {
    let (prefix, name) = match name.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, name),
    };
    let mut words = Vec::new();
    match prefix {
        Some("") => words.push("prefix part must be non-empty".to_string()),
        Some(prefix) => words.extend(subdomain(prefix).iter().map(|why| format!("prefix part {why}"))),
        None => {}
    }
    if name.is_empty() {
        words.push("name part must be non-empty".into());
    } else if name.len() > 63 {
        words.push("name part must be no more than 63 characters".into());
    }
    if !is_word(name) {
        words.push(QUALIFIED_WORDS.into());
    }
    words
}

fn label_value(value: &str) -> Vec<String> {
    let fits = value.is_empty() || is_word(value);
    longer_than(value, 63).into_iter().chain((!fits).then(|| LABEL_VALUE_WORDS.into())).collect()
}

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
fn is_label(text: &str) -> bool {
    let letter = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    matches!((text.as_bytes().first(), text.as_bytes().last()), (Some(first), Some(last)) if letter(*first) && letter(*last))
        && text.bytes().all(|c| letter(c) || c == b'-')
}

/// `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`
fn is_word(text: &str) -> bool {
    let letter = |c: u8| c.is_ascii_alphanumeric();
    matches!((text.as_bytes().first(), text.as_bytes().last()), (Some(first), Some(last)) if letter(*first) && letter(*last))
        && text.bytes().all(|c| letter(c) || matches!(c, b'-' | b'_' | b'.'))
}
