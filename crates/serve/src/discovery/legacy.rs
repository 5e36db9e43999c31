//! Unaggregated discovery: one request for the groups, and one for each group and version.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{self, HeaderMap};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{group_versions, of};
use crate::{Resource, Resources};

/// `/api`. A real server, too, sends no `apiVersion` here.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiVersions {
    kind: &'static str,
    versions: Vec<String>,
    #[serde(rename = "serverAddressByClientCIDRs")]
    server_address_by_client_cidrs: Vec<ServerAddress>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerAddress {
    #[serde(rename = "clientCIDR")]
    client_cidr: &'static str,
    server_address: String,
}

/// `/apis`
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiGroupList {
    kind: &'static str,
    api_version: &'static str,
    groups: Vec<ApiGroup>,
}

/// `/apis/G`, and an element of `/apis`, which has neither kind nor version.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiGroup {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    name: String,
    versions: Vec<GroupVersion>,
    preferred_version: GroupVersion,
}

#[derive(Serialize, Clone)]
#[serde(rename_all = "camelCase")]
struct GroupVersion {
    group_version: String,
    version: String,
}

/// `/api/v1`, `/apis/G/V`
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiResourceList {
    kind: &'static str,
    /// The core group's list has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    group_version: String,
    resources: Vec<ApiResource>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiResource {
    name: String,
    singular_name: String,
    namespaced: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: Box<str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: Box<str>,
    kind: Box<str>,
    verbs: Vec<Box<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<Box<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_version_hash: Option<String>,
}

pub(super) fn versions(resources: &Resources, headers: &HeaderMap) -> ApiVersions {
    let address = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let core = group_versions(resources).into_iter().find(|(group, _)| group.is_empty());
    ApiVersions {
        kind: "APIVersions",
        versions: core
            .map(|(_, versions)| versions)
            .unwrap_or_default()
            .into_iter()
            .map(String::from)
            .collect(),
        server_address_by_client_cidrs: vec![ServerAddress {
            client_cidr: "0.0.0.0/0",
            server_address: address.to_string(),
        }],
    }
}

pub(super) fn groups(resources: &Resources) -> ApiGroupList {
    let groups = group_versions(resources)
        .into_iter()
        .filter(|(name, _)| !name.is_empty())
        .filter_map(|(name, versions)| describe(name, &versions))
        .collect();
    ApiGroupList { kind: "APIGroupList", api_version: "v1", groups }
}

pub(super) fn group(resources: &Resources, name: &str) -> Option<ApiGroup> {
    let (name, versions) =
        group_versions(resources).into_iter().find(|(group, _)| *group == name && !group.is_empty())?;
    let group = describe(name, &versions)?;
    Some(ApiGroup { kind: Some("APIGroup"), api_version: Some("v1"), ..group })
}

fn describe(name: &str, versions: &[&str]) -> Option<ApiGroup> {
    let versions: Vec<GroupVersion> = versions
        .iter()
        .map(|version| GroupVersion {
            group_version: format!("{name}/{version}"),
            version: (*version).to_string(),
        })
        .collect();
    let preferred_version = versions.first()?.clone();
    Some(ApiGroup { kind: None, api_version: None, name: name.to_string(), versions, preferred_version })
}

pub(super) fn resources(all: &Resources, group: &str, version: &str) -> Option<ApiResourceList> {
    let mut list = Vec::new();
    for resource in of(all, group, version) {
        list.push(ApiResource {
            name: resource.plural.to_string(),
            singular_name: resource.singular.to_string(),
            namespaced: resource.namespaced,
            group: "".into(),
            version: "".into(),
            kind: resource.kind.clone(),
            verbs: resource.verbs.clone(),
            short_names: resource.short_names.clone(),
            categories: resource.categories.clone(),
            storage_version_hash: storage_version_hash(all, resource),
        });
        list.extend(resource.subresources.iter().map(|subresource| {
            let (group, version, kind) = subresource
                .group_version_kind
                .clone()
                .unwrap_or_else(|| ("".into(), "".into(), resource.kind.clone()));
            // Present only if it differs from the list's.
            let foreign = group != resource.group || version != resource.version;
            ApiResource {
                name: format!("{}/{}", resource.plural, subresource.name),
                singular_name: String::new(),
                namespaced: resource.namespaced,
                group: if foreign { group } else { "".into() },
                version: if foreign { version } else { "".into() },
                kind,
                verbs: subresource.verbs.clone(),
                short_names: Vec::new(),
                categories: Vec::new(),
                storage_version_hash: None,
            }
        }));
    }
    let group_version = if group.is_empty() { version.to_string() } else { format!("{group}/{version}") };
    (!list.is_empty()).then(|| ApiResourceList {
        kind: "APIResourceList",
        api_version: (!group.is_empty()).then_some("v1"),
        group_version,
        resources: list,
    })
}

/// Changes when objects are stored in another version. The default storage version is the preferred one; Events are
/// stored as those of the core group in every group.
fn storage_version_hash(all: &Resources, resource: &Resource) -> Option<String> {
    if !resource.allows("watch") {
        return None;
    }
    let (group, version) = if &*resource.group == "events.k8s.io" {
        ("", "v1")
    } else if let Some(stored) = &resource.stored_version {
        (&*resource.group, &**stored)
    } else {
        let stored = all
            .iter()
            .find(|other| other.group == resource.group && other.plural == resource.plural)
            .map_or(&*resource.version, |preferred| &*preferred.version);
        (&*resource.group, stored)
    };
    let hash = Sha256::digest(format!("{group}/{version}/{}", resource.kind));
    Some(BASE64_STANDARD.encode(&hash[..8]))
}
