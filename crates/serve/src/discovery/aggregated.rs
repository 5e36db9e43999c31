//! Aggregated discovery: all groups, versions and resources in one answer.

use http::Response;
use http::header::HeaderMap;
use serde::Serialize;

use super::{accepted, group_versions, of, tagged};
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupDiscoveryList<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Metadata<'a>,
    items: Vec<GroupDiscovery<'a>>,
}

#[derive(Serialize, Default)]
struct Metadata<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
}

#[derive(Serialize)]
struct GroupDiscovery<'a> {
    metadata: Metadata<'a>,
    versions: Vec<VersionDiscovery<'a>>,
}

#[derive(Serialize)]
struct VersionDiscovery<'a> {
    version: &'a str,
    resources: Vec<ResourceDiscovery<'a>>,
    freshness: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDiscovery<'a> {
    resource: &'a str,
    response_kind: Kind<'a>,
    scope: &'static str,
    singular_resource: &'a str,
    verbs: &'a [Box<str>],
    #[serde(skip_serializing_if = "is_empty")]
    short_names: &'a [Box<str>],
    #[serde(skip_serializing_if = "is_empty")]
    categories: &'a [Box<str>],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<SubresourceDiscovery<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceDiscovery<'a> {
    subresource: &'a str,
    response_kind: Kind<'a>,
    verbs: &'a [Box<str>],
}

#[derive(Serialize)]
struct Kind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

fn is_empty(list: &&[Box<str>]) -> bool {
    list.is_empty()
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
    let items = group_versions(resources)
        .into_iter()
        .filter(|(group, _)| wanted(group))
        .map(|(group, versions)| GroupDiscovery {
            metadata: Metadata { name: group },
            versions: versions
                .into_iter()
                .map(|version| VersionDiscovery {
                    version,
                    resources: of(resources, group, version).map(describe).collect(),
                    freshness: "Current",
                })
                .collect(),
        })
        .collect();
    let list = GroupDiscoveryList {
        kind: "APIGroupDiscoveryList",
        api_version: "apidiscovery.k8s.io/v2",
        metadata: Metadata::default(),
        items,
    };
    tagged(&list, MEDIA_TYPE, headers)
}

fn describe(resource: &Resource) -> ResourceDiscovery<'_> {
    ResourceDiscovery {
        resource: &resource.plural,
        response_kind: kind(resource, None),
        scope: if resource.namespaced { "Namespaced" } else { "Cluster" },
        singular_resource: &resource.singular,
        verbs: &resource.verbs,
        short_names: &resource.short_names,
        categories: &resource.categories,
        subresources: resource
            .subresources
            .iter()
            .map(|subresource| SubresourceDiscovery {
                subresource: &subresource.name,
                response_kind: kind(resource, Some(subresource)),
                verbs: &subresource.verbs,
            })
            .collect(),
    }
}

/// Built-in resources omit group and version if they are the resource's own; custom ones name them.
fn kind<'a>(resource: &'a Resource, subresource: Option<&'a Subresource>) -> Kind<'a> {
    let (group, version, kind) = match subresource.and_then(|below| below.group_version_kind.as_ref()) {
        Some((group, version, kind)) => (&**group, &**version, &**kind),
        None => (&*resource.group, &*resource.version, &*resource.kind),
    };
    let own = (group, version) == (&*resource.group, &*resource.version);
    if own && !resource.typed_items {
        Kind { group: "", version: "", kind }
    } else {
        Kind { group, version, kind }
    }
}
