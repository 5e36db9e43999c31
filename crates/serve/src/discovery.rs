//! The documents that a server publishes about itself: version, health, groups, versions and resources.
//!
//! Resources are published twice: group by group, the traditional form, and all at once (KEP-3352, aggregated
//! discovery).

mod aggregated;
mod legacy;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha512};

use crate::answer::Document;
use crate::{
    Body, Catalog, Reason, Resource, Resources, ServerVersion, Status, answer, full, negotiate, protobuf,
};

/// Answers requests that are not about objects; `None` if the path is not one of discovery's.
pub(crate) fn answer(catalog: &dyn Catalog, path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
    if path == "/" {
        return Some(document(&paths(&catalog.resources())));
    }
    let segments: Vec<&str> = path.strip_suffix('/').unwrap_or(path).split('/').skip(1).collect();
    let resources = catalog.resources();
    let answer = match *segments.as_slice() {
        ["version"] if !takes_json(headers) => {
            let message = "406: Not Acceptable\n\nAvailable representations: application/json";
            answer::status(&Status::new(Reason::NotAcceptable, message).about("", "", ""))
        }
        ["version"] => document(&version(&catalog.version())),
        // This server has nothing to wait for: while it answers, it is healthy.
        ["healthz" | "livez" | "readyz"] if !path.ends_with('/') => text(StatusCode::OK, "ok"),
        ["healthz" | "livez" | "readyz", "ping"] => text(StatusCode::OK, "ok"),
        ["api"] if aggregated::wanted(headers).is_some() => aggregated::core(&resources, headers),
        ["apis"] if aggregated::wanted(headers).is_some() => aggregated::groups(&resources, headers),
        ["api"] => negotiated(headers, true, || document(&legacy::versions(&resources, headers))),
        ["apis"] => negotiated(headers, false, || document(&legacy::groups(&resources))),
        ["api", version] => legacy_resources(&resources, "", version, headers),
        ["apis", group] => match legacy::group(&resources, group) {
            Some(group) => negotiated(headers, false, || document(&group)),
            None => unknown_path(),
        },
        ["apis", group, version] => legacy_resources(&resources, group, version, headers),
        _ => return None,
    };
    Some(answer)
}

/// The response to an unknown path.
pub(crate) fn unknown_path() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

fn legacy_resources(
    resources: &Resources,
    group: &str,
    version: &str,
    headers: &HeaderMap,
) -> Response<Body> {
    if let Some(list) = legacy::resources(resources, group, version) {
        return negotiated(headers, has_door(resources, group), || document(&list));
    }
    // Groups of custom resources have no handler of their own, which would answer with an API object.
    if has_door(resources, group) { answer::status(&not_here()) } else { unknown_path() }
}

/// Whether the paths of a group have a handler that checks methods and media types first, as those of built-in kinds
/// do.
fn has_door(resources: &Resources, group: &str) -> bool {
    resources.iter().any(|resource| *resource.group == *group && !resource.typed_items)
}

/// Whether a path accepts only GET and HEAD. The handlers of group lists and of custom resources ignore the method.
pub(crate) fn only_reads(resources: &Resources, path: &str) -> bool {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    match *segments.as_slice() {
        ["apis"] | ["apis", _] => false,
        ["api", version] => of(resources, "", version).next().is_some(),
        ["apis", group, version] => {
            has_door(resources, group) && of(resources, group, version).next().is_some()
        }
        _ => true,
    }
}

/// The path does not exist, but a prefix of it does.
pub(crate) fn not_here() -> Status {
    Status::new(Reason::NotFound, "the server could not find the requested resource").about("", "", "")
}

/// Answers if the client accepts JSON, or protobuf, which the response can become. A handler that checks media types
/// refuses in its own words if the client accepts none of them.
fn negotiated(headers: &HeaderMap, door: bool, answer: impl FnOnce() -> Response<Body>) -> Response<Body> {
    const TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    if accepts_json(headers) || negotiate::wants_protobuf(headers) {
        return answer();
    }
    let mut wishes = accepted(headers).map(|wish| wish.split(';').next().unwrap_or_default().trim());
    if door && !wishes.any(|kind| TYPES.split(", ").any(|known| known == kind)) {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {TYPES}");
        return answer::status(&Status::new(Reason::NotAcceptable, message).about("", "", ""));
    }
    let message = format!("only the following media types are accepted: {TYPES}");
    answer::status(&Status::new(Reason::NotAcceptable, message))
}

/// Whether a client accepts JSON in any form.
fn takes_json(headers: &HeaderMap) -> bool {
    let mut kinds =
        accepted(headers).map(|wish| wish.split(';').next().unwrap_or_default().trim()).peekable();
    kinds.peek().is_none() || kinds.any(|kind| matches!(kind, "application/json" | "application/*" | "*/*"))
}

/// Whether a client accepts JSON without further conditions.
pub(crate) fn accepts_json(headers: &HeaderMap) -> bool {
    let mut wishes = accepted(headers).peekable();
    wishes.peek().is_none()
        || wishes.any(|wish| {
            let mut parts = wish.split(';').map(str::trim);
            let media_type = parts.next().unwrap_or_default();
            matches!(media_type, "application/json" | "application/*" | "*/*")
                && !parts.any(|part| part.starts_with("as="))
        })
}

/// The clauses of all `Accept` headers.
fn accepted(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|wish| !wish.is_empty())
}

fn version(version: &ServerVersion) -> Value {
    let (major, minor) = (version.major.to_string(), version.minor.to_string());
    json!({
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": version.minor.saturating_sub(1).to_string(),
        "gitVersion": version.git_version,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        // Clients expect a value; this server has no Go in it.
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

fn paths(resources: &Resources) -> Value {
    let mut paths: Vec<String> =
        ["/api", "/apis", "/apis/", "/healthz", "/healthz/ping", "/livez", "/livez/ping", "/openapi/v3"]
            .into_iter()
            .chain(["/openapi/v3/", "/readyz", "/readyz/ping", "/version"])
            .map(String::from)
            .collect();
    for resource in resources.iter() {
        paths.push(root(&resource.group, &resource.version));
        if !resource.group.is_empty() {
            paths.push(format!("/apis/{}", resource.group));
        }
    }
    paths.sort();
    paths.dedup();
    json!({ "paths": paths })
}

/// The path of the resources of a group and version.
pub(crate) fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

/// All groups and versions in order, the core group first if the server has it.
pub(crate) fn group_versions(resources: &Resources) -> Vec<(&str, Vec<&str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for resource in resources.iter() {
        let at = groups.iter().position(|(group, _)| **group == *resource.group).unwrap_or_else(|| {
            groups.push((&resource.group, Vec::new()));
            groups.len() - 1
        });
        if !groups[at].1.contains(&&*resource.version) {
            groups[at].1.push(&resource.version);
        }
    }
    groups
}

/// The resources of one group and version.
pub(crate) fn of<'a>(
    resources: &'a Resources,
    group: &'a str,
    version: &'a str,
) -> impl Iterator<Item = &'a Resource> {
    resources
        .iter()
        .map(|resource| &**resource)
        .filter(move |resource| *resource.group == *group && *resource.version == *version)
}

pub(crate) fn document(value: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(bytes) => answer::json(StatusCode::OK, bytes),
        Err(error) => answer::status(&Status::new(Reason::InternalError, error.to_string())),
    }
}

/// As `document`, with an ETag: a client that has the content already gets 304.
fn tagged(value: &impl Serialize, media_type: &'static str, headers: &HeaderMap) -> Response<Body> {
    let bytes = match serde_json::to_vec(value) {
        Ok(bytes) => bytes,
        Err(error) => return answer::status(&Status::new(Reason::InternalError, error.to_string())),
    };
    let tag = format!("\"{}\"", fingerprint(&bytes));
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| *known == *tag);
    let mut answer = if known {
        let mut answer = Response::new(full(""));
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        answer
    } else {
        let text = Bytes::from(bytes);
        let mut answer = answer::answer(StatusCode::OK, media_type, full(text.clone()));
        if aggregated::wanted(headers) == Some(protobuf::CONTENT_TYPE) {
            answer.extensions_mut().insert(Document { text, wanted: Some(aggregated::PROTOBUF) });
        }
        answer
    };
    set(&mut answer, header::CACHE_CONTROL, "public");
    set(&mut answer, header::VARY, "Accept");
    set(&mut answer, header::ETAG, &tag);
    answer
}

/// The hash that servers use as ETag.
pub(crate) fn fingerprint(bytes: &[u8]) -> String {
    Sha512::digest(bytes).iter().map(|byte| format!("{byte:02X}")).collect()
}

pub(crate) fn text(code: StatusCode, text: &'static str) -> Response<Body> {
    let mut answer = answer::answer(code, "text/plain; charset=utf-8", full(text));
    set(&mut answer, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    answer
}

/// Sets a header, unless the value is invalid in a header.
pub(crate) fn set(answer: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}
