//! Unaggregated discovery: one request for the groups, and one for each group and version.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{self, HeaderMap};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{group_versions, of};
use crate::json::without_empty;
use crate::{Resource, Resources};

/// `/api`. A real server, too, sends no `apiVersion` here.
pub(super) fn versions(resources: &Resources, headers: &HeaderMap) -> Value {
    let address = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let core = group_versions(resources).into_iter().find(|(group, _)| group.is_empty());
    json!({
        "kind": "APIVersions",
        "versions": core.map(|(_, versions)| versions).unwrap_or_default(),
        "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": address }],
    })
}

/// `/apis`
pub(super) fn groups(resources: &Resources) -> Value {
    let groups = group_versions(resources).into_iter().filter(|(name, _)| !name.is_empty());
    let groups: Vec<_> = groups.map(|(name, versions)| describe(name, &versions)).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// `/apis/G`
pub(super) fn group(resources: &Resources, name: &str) -> Option<Value> {
    let mut all = group_versions(resources).into_iter().filter(|(group, _)| !group.is_empty());
    let (name, versions) = all.find(|(group, _)| *group == name)?;
    let mut group = describe(name, &versions);
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    Some(group)
}

/// An element of `/apis`, which has neither kind nor version.
fn describe(name: &str, versions: &[&str]) -> Value {
    let version = |version| json!({ "groupVersion": format!("{name}/{version}"), "version": version });
    let versions: Vec<_> = versions.iter().map(version).collect();
    json!({ "name": name, "preferredVersion": versions.first(), "versions": versions })
}

/// `/api/v1`, `/apis/G/V`
pub(super) fn resources(all: &Resources, group: &str, version: &str) -> Option<Value> {
    let mut list = Vec::new();
    for resource in of(all, group, version) {
        list.push(without_empty(json!({
            "name": resource.plural,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "shortNames": resource.short_names,
            "categories": resource.categories,
            "storageVersionHash": storage_version_hash(all, resource),
        })));
        set_always(&mut list, &resource.singular, &resource.verbs);
        for subresource in &resource.subresources {
            let of = subresource.group_version_kind.as_ref();
            let (group, version, kind) =
                of.map_or(("", "", &*resource.kind), |(group, version, kind)| (group, version, kind));
            // Present only if it differs from the list's.
            let is_foreign = group != &*resource.group || version != &*resource.version;
            list.push(without_empty(json!({
                "name": format!("{}/{}", resource.plural, subresource.name),
                "namespaced": resource.namespaced,
                "group": is_foreign.then_some(group),
                "version": is_foreign.then_some(version),
                "kind": kind,
            })));
            set_always(&mut list, "", &subresource.verbs);
        }
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let answer = json!({
        "kind": "APIResourceList",
        // The core group's list has none.
        "apiVersion": if group.is_empty() { "" } else { "v1" },
        "groupVersion": group_version,
        "resources": list,
    });
    (!list.is_empty()).then(|| without_empty(answer))
}

/// Sets the members of the last resource that are present even if they are empty.
fn set_always(list: &mut [Value], singular: &str, verbs: &[Box<str>]) {
    if let Some(last) = list.last_mut() {
        last["singularName"] = singular.into();
        last["verbs"] = json!(verbs);
    }
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
