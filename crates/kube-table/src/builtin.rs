//! The built-in resources.

use std::sync::{Arc, OnceLock};

use crate::{Columns, Resource, SelectableField, Subresource};

/// Their discovery documents. The top of the file explains its format and origin.
const TABLE: &str = include_str!("builtin.txt");

/// The release of Kubernetes that they are from, major and minor.
pub const RELEASE: (u32, u32) = (1, 37);

const ALL_VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The fields that field selectors may name, which discovery does not list: group, plural name and field, and for some
/// the path of the value and its default. They come from the field label conversions and registries of Kubernetes 1.37.
const SELECTABLE: &[(&str, &str, &str, &str, &str)] = &[
    ("", "pods", "spec.nodeName", "", ""),
    ("", "pods", "spec.restartPolicy", "", ""),
    ("", "pods", "spec.schedulerName", "", ""),
    ("", "pods", "spec.serviceAccountName", "", ""),
    ("", "pods", "spec.hostNetwork", "", "false"),
    ("", "pods", "status.phase", "", ""),
    ("", "pods", "status.podIP", "", ""),
    ("", "pods", "status.nominatedNodeName", "", ""),
    ("", "nodes", "spec.unschedulable", "", "false"),
    ("", "replicationcontrollers", "status.replicas", "", "0"),
    ("", "events", "involvedObject.kind", "", ""),
    ("", "events", "involvedObject.namespace", "", ""),
    ("", "events", "involvedObject.name", "", ""),
    ("", "events", "involvedObject.uid", "", ""),
    ("", "events", "involvedObject.apiVersion", "", ""),
    ("", "events", "involvedObject.resourceVersion", "", ""),
    ("", "events", "involvedObject.fieldPath", "", ""),
    ("", "events", "reason", "", ""),
    ("", "events", "reportingComponent", "", ""),
    ("", "events", "source", "/source/component", ""),
    ("", "events", "type", "", ""),
    ("", "namespaces", "status.phase", "", ""),
    ("", "secrets", "type", "", ""),
    ("", "services", "spec.clusterIP", "", ""),
    ("", "services", "spec.type", "", ""),
    ("batch", "jobs", "status.successful", "/status/succeeded", "0"),
    ("certificates.k8s.io", "certificatesigningrequests", "spec.signerName", "", ""),
    ("resource.k8s.io", "resourceslices", "spec.nodeName", "", ""),
    ("resource.k8s.io", "resourceslices", "spec.driver", "", ""),
    ("resource.k8s.io", "resourceslices", "spec.pool.name", "", ""),
];

/// All built-in resources, in the order of discovery.
///
/// ```
/// let resources = kube_table::builtin::resources();
/// let deployments = resources.iter().find(|resource| &*resource.plural == "deployments").unwrap();
/// assert_eq!(&*deployments.short_names[0], "deploy");
/// ```
pub fn resources() -> Vec<Arc<Resource>> {
    table().to_vec()
}

/// Whether a kind is built in, in any version.
///
/// ```
/// assert!(kube_table::builtin::has("apps", "Deployment"));
/// assert!(!kube_table::builtin::has("example.com", "Deployment"));
/// ```
pub fn has(group: &str, kind: &str) -> bool {
    table().iter().any(|it| *it.kind == *kind && *it.group == *group)
}

fn table() -> &'static [Arc<Resource>] {
    // The table is read once: simulations start thousands of servers.
    static RESOURCES: OnceLock<Vec<Arc<Resource>>> = OnceLock::new();
    RESOURCES.get_or_init(read_resources)
}

fn read_resources() -> Vec<Arc<Resource>> {
    let mut resources: Vec<Resource> = Vec::new();
    let (mut group, mut version) = ("", "");
    for line in TABLE.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (line.len() - line.trim_start().len(), words.as_slice()) {
            (0, [name]) => (group, version) = name.split_once('/').unwrap_or(("", name)),
            (2, [plural, singular, kind, scope, short, categories, verbs]) => resources.push(Resource {
                group: group.into(),
                version: version.into(),
                plural: (*plural).into(),
                singular: (*singular).into(),
                kind: (*kind).into(),
                list_kind: format!("{kind}List").into(),
                namespaced: *scope == "namespaced",
                short_names: names(short),
                categories: names(categories),
                verbs: names(verbs),
                subresources: Vec::new(),
                selectable: selectable(group, plural),
                columns: Columns::BuiltIn,
                typed_items: false,
                stored_version: stored_version(group),
            }),
            (4, [name, kind, verbs]) => {
                if let Some(resource) = resources.last_mut() {
                    resource.subresources.push(Subresource {
                        name: (*name).into(),
                        group_version_kind: other_kind(resource, kind),
                        verbs: names(verbs),
                    });
                }
            }
            _ => debug_assert!(false, "not a line of the table: {line}"),
        }
    }
    resources.into_iter().map(Arc::new).collect()
}

/// Kubernetes stores CustomResourceDefinitions as `v1beta1`.
fn stored_version(group: &str) -> Option<Box<str>> {
    (group == "apiextensions.k8s.io").then(|| "v1beta1".into())
}

fn names(list: &str) -> Vec<Box<str>> {
    match list {
        "-" => Vec::new(),
        "*" => ALL_VERBS.map(Into::into).to_vec(),
        list => list.split(',').map(Into::into).collect(),
    }
}

/// `Pod`, `v1/Binding`, `policy/v1/Eviction`; `None` for the resource's own kind.
fn other_kind(resource: &Resource, kind: &str) -> Option<(Box<str>, Box<str>, Box<str>)> {
    let parts: Vec<&str> = kind.split('/').collect();
    let (group, version, kind) = match parts.as_slice() {
        [group, version, kind] => (*group, *version, *kind),
        [version, kind] => ("", *version, *kind),
        _ => (&*resource.group, &*resource.version, kind),
    };
    let own = *resource.group == *group && *resource.version == *version && *resource.kind == *kind;
    (!own).then(|| (group.into(), version.into(), kind.into()))
}

/// The kind of a built-in resource.
pub fn kind(group: &str, plural: &str) -> Option<Box<str>> {
    let resources = resources();
    let found = resources.iter().find(|known| *known.group == *group && *known.plural == *plural);
    found.map(|resource| resource.kind.clone())
}

fn selectable(group: &str, plural: &str) -> Vec<SelectableField> {
    let of_it = SELECTABLE.iter().filter(|row| row.0 == group && row.1 == plural);
    let fields = of_it.map(|(_, _, label, pointer, missing)| SelectableField {
        label: (*label).into(),
        pointer: if pointer.is_empty() {
            format!("/{}", label.replace('.', "/")).into()
        } else {
            (*pointer).into()
        },
        missing: (*missing).into(),
    });
    fields.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_as_discovery_tells_it() {
        let resources = resources();
        let find = |group: &str, plural: &str| {
            resources
                .iter()
                .find(|resource| *resource.group == *group && *resource.plural == *plural)
                .unwrap()
        };
        let pods = find("", "pods");
        assert_eq!((&*pods.kind, &*pods.list_kind, pods.namespaced), ("Pod", "PodList", true));
        assert_eq!((pods.verbs.len(), pods.subresources.len()), (8, 10));
        assert!(!find("", "namespaces").allows("deletecollection"));
        let scale = &find("apps", "deployments").subresources[0];
        assert_eq!(scale.group_version_kind, Some(("autoscaling".into(), "v1".into(), "Scale".into())));
        assert_eq!(find("apps", "deployments").subresources[1].group_version_kind, None);
        assert_eq!(resources.len(), 70);
    }

    #[test]
    fn every_selectable_field_belongs_to_a_resource() {
        let resources = resources();
        for (group, plural, ..) in SELECTABLE {
            let known = |resource: &Arc<Resource>| *resource.group == **group && *resource.plural == **plural;
            assert!(resources.iter().any(known), "{plural}.{group}");
        }
    }
}
