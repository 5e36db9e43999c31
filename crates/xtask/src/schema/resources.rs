//! The built-in resources of a real API server, as the table that `testapi` reads; its head explains the format.

use std::fmt::Write as _;

use control_plane::{ControlPlane, Release};
use serde_json::Value;

use tooling::Error;

use super::{get, items, string};

/// The verbs of all usual resources.
const ALL_VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The same objects as core/v1 and autoscaling/v2 in other words.
const LEFT_OUT: [&str; 2] = ["events.k8s.io/v1", "autoscaling/v1"];

pub(super) fn table(server: &ControlPlane, release: Release) -> Result<String, Error> {
    let mut text = format!(
        "# The built-in resources as a real kube-apiserver v{release} tells them by discovery, in its order, by `cargo xtask\n\
         # schema`. Left out: events.k8s.io/v1 and autoscaling/v1 (the same objects as core/v1 and autoscaling/v2 in other\n\
         # words).\n\
         #\n\
         # GROUP/VERSION\n\
         #   PLURAL SINGULAR KIND SCOPE SHORT-NAMES CATEGORIES VERBS          `-`: none, `*`: all eight of a usual resource\n\
         #     SUBRESOURCE [GROUP/VERSION/]KIND VERBS\n"
    );
    let groups = get(server, "/apis")?;
    let versions = items(&groups["groups"]).flat_map(|group| items(&group["versions"]));
    let versions = versions.map(|version| string(&version["groupVersion"]));
    text.push_str(&lines("v1", &get(server, "/api/v1")?));
    for version in versions.filter(|version| !LEFT_OUT.contains(version)) {
        text.push_str(&lines(version, &get(server, &format!("/apis/{version}"))?));
    }
    Ok(text)
}

/// The lines of a group and version.
fn lines(group_version: &str, list: &Value) -> String {
    let mut text = format!("{group_version}\n");
    // A resource may come after its subresources.
    for resource in items(&list["resources"]).filter(|resource| !string(&resource["name"]).contains('/')) {
        let plural = string(&resource["name"]);
        let scope = if resource["namespaced"] == true { "namespaced" } else { "cluster" };
        _ = writeln!(
            text,
            "  {plural} {} {} {scope} {} {} {}",
            string(&resource["singularName"]),
            string(&resource["kind"]),
            names(&resource["shortNames"]),
            names(&resource["categories"]),
            names(&resource["verbs"]),
        );
        for subresource in items(&list["resources"]) {
            let Some((of, name)) = string(&subresource["name"]).split_once('/') else { continue };
            if of == plural {
                let (kind, verbs) = (kind(subresource), names(&subresource["verbs"]));
                _ = writeln!(text, "    {name} {kind} {verbs}");
            }
        }
    }
    text
}

/// `Pod`, or `policy/v1/Eviction` if the kind is of another group or version.
fn kind(subresource: &Value) -> String {
    let (group, version) = (string(&subresource["group"]), string(&subresource["version"]));
    let before = match (group, version) {
        ("", "") => String::new(),
        ("", version) => format!("{version}/"),
        (group, version) => format!("{group}/{version}/"),
    };
    before + string(&subresource["kind"])
}

fn names(list: &Value) -> String {
    let names: Vec<&str> = items(list).map(string).collect();
    match names.as_slice() {
        [] => "-".to_owned(),
        names if names == ALL_VERBS => "*".to_owned(),
        names => names.join(","),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_resource_is_a_line_and_its_subresources_follow() {
        let list = json!({ "resources": [
            { "name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "verbs": ALL_VERBS,
              "shortNames": ["po"], "categories": ["all"] },
            { "name": "pods/eviction", "kind": "Eviction", "group": "policy", "version": "v1", "verbs": ["create"] },
            { "name": "pods/status", "kind": "Pod", "verbs": ["get", "patch", "update"] },
            { "name": "nodes", "singularName": "node", "namespaced": false, "kind": "Node", "verbs": ["get"] },
        ] });
        let expected = "v1\n  pods pod Pod namespaced po all *\n    eviction policy/v1/Eviction create\n    \
            status Pod get,patch,update\n  nodes node Node cluster - - get\n";
        assert_eq!(lines("v1", &list), expected);
    }
}
