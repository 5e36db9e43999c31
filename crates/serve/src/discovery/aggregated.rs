//! Aggregated discovery: all groups, versions and resources in one answer.

use http::Response;
use http::header::HeaderMap;
use serde_json::{Value, json};

use super::{accepted, group_versions, of, tagged};
use crate::json::without_empty;
use crate::{Body, Resource, Resources, Subresource, protobuf};

const MEDIA_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The media type in protobuf.
pub(super) const PROTOBUF: &str =
    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The encoding in which a client wants aggregated discovery, if it does, in version 2, the version of today's servers.
pub(super) fn wanted(headers: &HeaderMap) -> Option<&str> {
    accepted(headers).find_map(|wish| {
        let mut parts = wish.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let parts: Vec<&str> = parts.collect();
        let whole = ["g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"];
        let known = matches!(media_type, "application/json" | protobuf::CONTENT_TYPE);
        (known && whole.iter().all(|part| parts.contains(part))).then_some(media_type)
    })
}

/// `/api`
pub(super) fn core(resources: &Resources, headers: &HeaderMap) -> Response<Body> {
    list(resources, headers, |group| group.is_empty())
}

/// `/apis`
pub(super) fn groups(resources: &Resources, headers: &HeaderMap) -> Response<Body> {
    list(resources, headers, |group| !group.is_empty())
}

fn list(resources: &Resources, headers: &HeaderMap, wanted: impl Fn(&str) -> bool) -> Response<Body> {
    let version = |group, version| {
        let resources: Vec<_> = of(resources, group, version).map(describe).collect();
        json!({ "version": version, "resources": resources, "freshness": "Current" })
    };
    let groups = group_versions(resources).into_iter().filter(|(group, _)| wanted(group));
    let items = groups.map(|(group, versions)| {
        let versions: Vec<_> = versions.into_iter().map(|name| version(group, name)).collect();
        json!({ "metadata": without_empty(json!({ "name": group })), "versions": versions })
    });
    let list = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items.collect::<Vec<_>>(),
    });
    tagged(&list, MEDIA_TYPE, headers)
}

fn describe(resource: &Resource) -> Value {
    let subresource = |below: &Subresource| json!({ "subresource": below.name, "responseKind": kind(resource, Some(below)), "verbs": below.verbs });
    let subresources: Vec<_> = resource.subresources.iter().map(subresource).collect();
    let mut described = without_empty(json!({
        "resource": resource.plural,
        "responseKind": kind(resource, None),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "shortNames": resource.short_names,
        "categories": resource.categories,
        "subresources": subresources,
    }));
    described["singularResource"] = json!(resource.singular);
    described["verbs"] = json!(resource.verbs);
    described
}

/// Built-in resources omit group and version if they are the resource's own; custom ones name them.
fn kind(resource: &Resource, subresource: Option<&Subresource>) -> Value {
    let of = subresource.and_then(|below| below.group_version_kind.as_ref());
    let own = (&resource.group, &resource.version, &resource.kind);
    let (group, version, kind) = of.map_or(own, |(group, version, kind)| (group, version, kind));
    let is_own = (group, version) == (&resource.group, &resource.version);
    if is_own && !resource.typed_items {
        json!({ "group": "", "version": "", "kind": kind })
    } else {
        json!({ "group": group, "version": version, "kind": kind })
    }
}
