//! Nodes.

use serde_json::Value;

use super::row::Row;

const ROLE_LABEL: &str = "node-role.kubernetes.io/";

pub(super) fn cells(resource: &str) -> Option<fn(&Row<'_>) -> Vec<Value>> {
    (resource == "nodes").then_some(node)
}

fn node(row: &Row<'_>) -> Vec<Value> {
    let info = |name: &str| format!("/status/nodeInfo/{name}");
    let mut kernel = row.text_or(&info("kernelVersion"), "<unknown>").to_string();
    let architecture = row.text(&info("architecture"));
    if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    vec![
        row.name(),
        status(row).into(),
        roles(row).into(),
        row.age(),
        row.text(&info("kubeletVersion")).into(),
        address(row, "InternalIP").into(),
        address(row, "ExternalIP").into(),
        row.text_or(&info("osImage"), "<unknown>").into(),
        kernel.into(),
        row.text_or(&info("containerRuntimeVersion"), "<unknown>").into(),
    ]
}

fn status(row: &Row<'_>) -> String {
    // Of several conditions of one type the last counts.
    let ready = row.list("/status/conditions").rev().find(|condition| condition.text("/type") == "Ready");
    let status = match ready.map(|condition| condition.text("/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    if row.flag("/spec/unschedulable") { format!("{status},SchedulingDisabled") } else { status.to_string() }
}

/// The roles of the node by its labels.
fn roles(row: &Row<'_>) -> String {
    let labels = row.get("/metadata/labels").and_then(Value::as_object);
    let mut roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| match name.strip_prefix(ROLE_LABEL) {
            Some(role) => Some(role),
            None if name == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() { "<none>".to_string() } else { roles.join(",") }
}

fn address<'a>(row: &Row<'a>, kind: &str) -> &'a str {
    row.list("/status/addresses")
        .find(|address| address.text("/type") == kind)
        .map_or("<none>", |address| address.text("/address"))
}
