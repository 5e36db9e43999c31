//! Content negotiation: the representation and the encoding of a response.

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING};
use serde_json::{Value, json};

use crate::protobuf::{self, Messages};
use crate::representation::{Include, Representation};
use crate::{Catalog, Query, Reason, Resource, Status};

/// The representation and the encoding of a response.
#[derive(Debug, Clone, Default)]
pub(crate) struct Format {
    pub(crate) representation: Representation,
    pub(crate) encoding: Encoding,
}

/// The encoding of a response. CBOR is missing: clients that ask for it accept JSON as well.
#[derive(Debug, Clone, Default)]
pub(crate) enum Encoding {
    #[default]
    Json,
    Protobuf(Messages),
}

/// Chooses the format of a response about objects; `one` says whether it is about a single named object.
pub(crate) fn format(
    headers: &HeaderMap,
    catalog: &dyn Catalog,
    resource: &Resource,
    one: bool,
) -> Result<Format, Status> {
    let accept = accept(headers);
    if accept.trim().is_empty() {
        return Ok(Format::default());
    }
    let clauses = clauses(accept);
    clauses
        .iter()
        .find_map(|clause| clause.format(catalog, resource))
        .ok_or_else(|| nothing_acceptable(resource, &clauses, one))
}

/// Whether a client wants responses without an object of the resource, such as refusals, in protobuf.
pub(crate) fn wants_protobuf(headers: &HeaderMap) -> bool {
    let whole = |clause: &Clause<'_>| {
        let known = clause.is_json() || clause.kind == protobuf::CONTENT_TYPE;
        (known && clause.representation() == Some(Representation::Whole))
            .then_some(clause.kind == protobuf::CONTENT_TYPE)
    };
    clauses(accept(headers)).iter().find_map(whole).unwrap_or(false)
}

fn accept(headers: &HeaderMap) -> &str {
    headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default()
}

/// The media types that a client accepts, best first.
fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = accept.split(',').filter_map(Clause::parse).collect();
    // The real server's order, which is not a total order: it uses insertion sort, too.
    for end in 1..clauses.len() {
        for at in (1..=end).rev() {
            if !clauses[at].is_before(&clauses[at - 1]) {
                break;
            }
            clauses.swap(at, at - 1);
        }
    }
    clauses
}

impl Format {
    /// Adds the query's wishes for rows. Checked last, like the real server does.
    pub(crate) fn with_rows(mut self, query: &Query) -> Result<Self, Status> {
        if let Representation::Table { include, .. } = &mut self.representation {
            *include = wanted(query)?;
        }
        Ok(self)
    }
}

/// Whether the client accepts gzip.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let encodings = headers.get(ACCEPT_ENCODING).and_then(|encodings| encodings.to_str().ok());
    encodings.is_some_and(|encodings| encodings.split(',').any(|encoding| encoding.trim() == "gzip"))
}

/// One of the media types that a client accepts.
struct Clause<'a> {
    kind: &'a str,
    quality: f64,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let kind = parts.next().filter(|kind| !kind.is_empty())?;
        let mut clause = Self { kind, quality: 1.0, parameters: Vec::new() };
        for parameter in parts {
            match parameter.split_once('=') {
                Some(("q", quality)) => clause.quality = quality.trim().parse().unwrap_or(1.0),
                Some((name, value)) => clause.parameters.push((name.trim(), value.trim())),
                None => {}
            }
        }
        Some(clause)
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find_map(|(candidate, value)| (*candidate == name).then_some(*value))
    }

    fn is_before(&self, other: &Self) -> bool {
        let any_type = |clause: &Self| clause.kind.starts_with('*');
        let any_subtype = |clause: &Self| clause.kind.ends_with('*');
        self.quality > other.quality
            || (!any_type(self) && any_type(other))
            || (!any_subtype(self) && any_subtype(other))
    }

    /// Whether it is JSON, which is also the default.
    fn is_json(&self) -> bool {
        matches!(self.kind, "application/json" | "application/*" | "*/*")
    }

    /// The format that the clause asks for, if this server supports it.
    fn format(&self, catalog: &dyn Catalog, resource: &Resource) -> Option<Format> {
        let representation = self.representation()?;
        let encoding = match self.kind {
            protobuf::CONTENT_TYPE => Encoding::Protobuf(Messages::of(catalog, resource, &representation)?),
            _ if self.is_json() => Encoding::Json,
            _ => return None,
        };
        Some(Format { representation, encoding })
    }

    /// The representation that the clause asks for, if there is such a one.
    fn representation(&self) -> Option<Representation> {
        if self.get("stream").is_some_and(|stream| !matches!(stream, "" | "watch")) {
            return None;
        }
        let (kind, group, version) = (self.get("as"), self.get("g"), self.get("v"));
        if kind.is_none() && group.is_none() && version.is_none() {
            return Some(Representation::Whole);
        }
        let version = match (group, version) {
            (Some("meta.k8s.io"), Some("v1")) => "v1",
            (Some("meta.k8s.io"), Some("v1beta1")) => "v1beta1",
            _ => return None,
        };
        match kind {
            Some("Table") => Some(Representation::Table { version, include: Include::Metadata }),
            Some("PartialObjectMetadata") => Some(Representation::Metadata { version, list: false }),
            Some("PartialObjectMetadataList") => Some(Representation::Metadata { version, list: true }),
            _ => None,
        }
    }
}

fn wanted(query: &Query) -> Result<Include, Status> {
    match query.get("includeObject").unwrap_or_default() {
        "" | "Metadata" => Ok(Include::Metadata),
        "None" => Ok(Include::None),
        "Object" => Ok(Include::Object),
        other => Err(Status::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be \
             'Metadata', 'Object', 'None', or empty"
        ))),
    }
}

/// Refuses a representation of lists for one object.
pub(crate) fn one(representation: &Representation, resource: &Resource) -> Result<(), Status> {
    match representation {
        // The real server tries it, and its error has no reason.
        Representation::Metadata { list: true, .. } if resource.typed_items => {
            Err(Status::new(Reason::Unknown, "content is not a list"))
        }
        Representation::Metadata { list: true, .. } => Err(not_a_list(&go_type(resource, false))),
        _ => Ok(()),
    }
}

/// How much is sent of a response that is no object of the resource: a Status as it is, a Scale like an object.
pub(crate) fn part(
    representation: &Representation,
    resource: &Resource,
    object: &Value,
) -> Result<Option<Value>, Status> {
    let Representation::Metadata { version, list } = representation else { return Ok(None) };
    if object["kind"] == "Status" {
        return Ok(None);
    }
    if *list {
        let package = if resource.typed_items { "v1" } else { "autoscaling" };
        let kind = object["kind"].as_str().unwrap_or_default();
        return Err(not_a_list(&format!("*{package}.{kind}")));
    }
    let api_version = format!("meta.k8s.io/{version}");
    let kind = "PartialObjectMetadata";
    Ok(Some(json!({ "kind": kind, "apiVersion": api_version, "metadata": object["metadata"] })))
}

fn not_a_list(go_type: &str) -> Status {
    not_acceptable(format!(
        "you requested PartialObjectMetadataList, but the requested object is not a list ({go_type})"
    ))
}

/// Refuses a representation of objects for a list.
pub(crate) fn several(representation: &Representation, resource: &Resource) -> Result<(), Status> {
    match representation {
        Representation::Metadata { list: false, .. } => Err(not_acceptable(format!(
            "you requested PartialObjectMetadata, but the requested object is a list ({})",
            go_type(resource, true)
        ))),
        _ => Ok(()),
    }
}

/// The Go type that the real server names in its error.
fn go_type(resource: &Resource, list: bool) -> String {
    if resource.typed_items {
        return "*unstructured.UnstructuredList".to_string();
    }
    let package = resource.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
    let kind = if list { &resource.list_kind } else { &resource.kind };
    format!("*{package}.{kind}")
}

/// The client accepts no media type that the server has. The handlers of built-in kinds check that first, and word it
/// their own way.
fn nothing_acceptable(resource: &Resource, clauses: &[Clause<'_>], one: bool) -> Status {
    const TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    const STREAMS: &str = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
    let at_the_door = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
    if resource.typed_items
        || clauses.iter().any(|clause| clause.kind == "*/*" || at_the_door.contains(&clause.kind))
    {
        return not_acceptable(format!("only the following media types are accepted: {TYPES}"));
    }
    let streams = if one { "" } else { STREAMS };
    not_acceptable(format!("406: Not Acceptable\n\nAvailable representations: {TYPES}{streams}"))
        .about("", "", "")
}

fn not_acceptable(message: String) -> Status {
    Status::new(Reason::NotAcceptable, message)
}
