//! The object in the body of a request.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use serde_json::{Value, json};
use serve::{Resource, Status};

use super::{FieldValidation, WriteOptions};
use crate::object::Meta;
use crate::refusal::{FieldError, invalid, unsupported_media_type};
use crate::turn::Target;
use crate::{go, schema};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const YAML: &str = "application/yaml";

/// Parses the object of a create or an update.
pub(crate) fn object(resource: &Resource, headers: &HeaderMap, body: &[u8]) -> Result<Value, Status> {
    json_only(headers)?;
    let object = parse(&resource.kind, body)?;
    check_type(resource, &object)?;
    Ok(object)
}

/// Converts a body in protobuf or YAML to JSON. Custom kinds have no protobuf.
pub(crate) fn as_json(resource: &Resource, parts: &mut Parts, body: Bytes) -> Result<Bytes, Status> {
    let sent = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if sent.starts_with(YAML.as_bytes()) {
        let object = parse_yaml(&body)?;
        parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        return Ok(object.to_string().into());
    }
    if !sent.starts_with(PROTOBUF.as_bytes()) {
        return Ok(body);
    }
    if resource.typed_items {
        return Err(unsupported_media_type(&["application/json", YAML]));
    }
    let object = schema::from_protobuf(&body).map_err(|error| {
        let message = format!("the object provided is unrecognized (must be of type {}): ", resource.kind);
        Status::bad_request(format!("{message}{error} ({})", summary(&body)))
    })?;
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(object.to_string().into())
}

/// Refuses bodies that are not JSON, after `as_json`.
pub(super) fn json_only(headers: &HeaderMap) -> Result<(), Status> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match content_type.split(';').next().unwrap_or_default().trim() {
        "" | "application/json" | "*/*" => Ok(()),
        _ => Err(unsupported_media_type(&["application/json", YAML, PROTOBUF])),
    }
}

/// Parses a JSON object; `kind` is for the error message.
pub(crate) fn parse(kind: &str, body: &[u8]) -> Result<Value, Status> {
    let unrecognized = |why: String| {
        let message = format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; "
        );
        Status::bad_request(format!("{message}json parse error: {why} ({})", summary(body)))
    };
    match serde_json::from_slice(body) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err(unrecognized("json: cannot unmarshal the value into an object".into())),
        Err(error) => Err(unrecognized(go::syntax_error(&error))),
    }
}

/// The beginning of a body, as the real server shows it.
fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let shown = &body[..body.len().min(SHOWN)];
    let more = if body.len() > SHOWN { " ..." } else { "" };
    match body.first() {
        None => "<empty>".into(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(shown)),
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + more,
    }
}

/// Checks that the object has the kind and version of the path.
pub(super) fn check_type(resource: &Resource, object: &Value) -> Result<(), Status> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    if resource.typed_items {
        return check_custom_type(resource, object, kind, api_version);
    }
    let (expected_kind, expected_version) = (&*resource.kind, resource.api_version());
    if kind.is_empty() && api_version.is_empty() {
        return Ok(());
    }
    let kind = if kind.is_empty() { expected_kind } else { kind };
    let api_version = if api_version.is_empty() { &*expected_version } else { api_version };
    if kind == expected_kind && api_version == expected_version {
        return Ok(());
    }
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let handled = format!("{kind} in version {version:?} cannot be handled as a {expected_kind}: ");
    Err(Status::bad_request(format!(
        "{handled}no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
    )))
}

fn check_custom_type(
    resource: &Resource,
    object: &Value,
    kind: &str,
    api_version: &str,
) -> Result<(), Status> {
    if kind.is_empty() {
        let text = object.to_string();
        let start = summary(text.as_bytes());
        let message = format!("the object provided is unrecognized (must be of type {}): ", resource.kind);
        return Err(Status::bad_request(format!("{message}Object 'Kind' is missing in '{text}' ({start})")));
    }
    let expected = resource.api_version();
    if api_version != expected {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    if *kind != *resource.kind {
        let why = format!("must be {}", resource.kind);
        let error = FieldError::invalid("kind", json!(kind), &why);
        return Err(invalid(&resource.group, kind, Meta(object).name(), &[error]));
    }
    Ok(())
}

/// A document in YAML, or in JSON, which most clients send.
pub(super) fn parse_yaml(body: &[u8]) -> Result<Value, Status> {
    serde_json::from_slice(body).or_else(|_| not_json(body))
}

#[cfg(not(feature = "yaml"))]
fn not_json(_: &[u8]) -> Result<Value, Status> {
    Err(Status::bad_request(
        "error decoding YAML: this server reads JSON only: build testapi with its feature `yaml`",
    ))
}

#[cfg(feature = "yaml")]
fn not_json(body: &[u8]) -> Result<Value, Status> {
    serde_saphyr::from_slice(body)
        .map_err(|error| Status::bad_request(format!("error decoding YAML: {}", error.without_snippet())))
}

/// Checks that an applied configuration has the kind and version of the path.
pub(super) fn check_applied_type(target: &Target, config: &Value) -> Result<(), Status> {
    let kind = config["kind"].as_str().unwrap_or_default();
    let api_version = config["apiVersion"].as_str().unwrap_or_default();
    if kind == &*target.resource.kind && api_version == target.resource.api_version() {
        return Ok(());
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Err(Status::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")))
}

/// Warnings, or a refusal, for unknown and duplicate fields.
pub(crate) fn check_fields(
    target: &Target,
    object: &Value,
    duplicates: &[String],
    options: &WriteOptions,
) -> Result<Vec<String>, Status> {
    if options.validation == FieldValidation::Ignore {
        return Ok(Vec::new());
    }
    let unknown = target.schema().map(|schema| schema.unknown_fields(object)).unwrap_or_default();
    let unknown = unknown.iter().map(|path| format!("unknown field {path:?}"));
    let duplicates = duplicates.iter().map(|path| format!("duplicate field {path:?}"));
    let words: Vec<String> = duplicates.chain(unknown).collect();
    if words.is_empty() || options.validation == FieldValidation::Warn {
        return Ok(words);
    }
    let (kind, version) = (&target.resource.kind, &target.resource.version);
    let handled = format!("{kind} in version {version:?} cannot be handled as a {kind}: ");
    Err(Status::bad_request(format!("{handled}strict decoding error: {}", words.join(", "))))
}

/// Checks that the server could decode the object into Go structures. For a custom kind only the metadata is one.
pub(crate) fn check_values(target: &Target, object: &Value) -> Result<(), Status> {
    let Some(wrong) = target.schema().and_then(|schema| schema.undecodable(object)) else { return Ok(()) };
    let (kind, version) = (&target.resource.kind, &target.resource.version);
    let message = format!("{kind} in version {version:?} cannot be handled as a {kind}: {wrong}");
    Err(Status::bad_request(message))
}

/// Checks that the object has the namespace of the path, or none.
pub(super) fn check_namespace(target: &Target, object: &Value) -> Result<(), Status> {
    let namespace = Meta(object).namespace();
    if namespace.is_empty() || namespace == target.namespace {
        return Ok(());
    }
    let message = "the namespace of the provided object does not match the namespace sent on the request";
    Err(Status::bad_request(message))
}

/// Checks that the object has the name of the path.
pub(super) fn check_name(target: &Target, object: &Value) -> Result<(), Status> {
    let (name, expected) = (Meta(object).name(), &target.name);
    if name.is_empty() {
        let message = format!(
            "the name of the object ({expected} based on URL) was undeterminable: name must be provided"
        );
        return Err(Status::bad_request(message));
    }
    if name != expected {
        let message =
            format!("the name of the object ({name}) does not match the name on the URL ({expected})");
        return Err(Status::bad_request(message));
    }
    Ok(())
}
