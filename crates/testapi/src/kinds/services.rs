//! Services: addresses and ports from the ranges 10.96.0.0/16 and 30000-32767.
//!
//! A service gets a random address and keeps it. Two services may get the same address, which is unlikely and not
//! prevented.

use serde_json::{Value, json};

use super::fill::{fill, fill_all, items, part};
use crate::turn::Turn;

/// Sets the defaults of a service, except its addresses.
pub(super) fn fill_spec(service: &mut Value) {
    let Some(spec) = part(service, "spec") else { return };
    fill_all(spec, json!({ "type": "ClusterIP", "sessionAffinity": "None" }));
    for port in items(spec, "ports") {
        fill(port, &["protocol"], "TCP".into());
        let same = port["port"].clone();
        fill(port, &["targetPort"], same);
    }
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    if kind != "ExternalName" {
        fill(spec, &["internalTrafficPolicy"], "Cluster".into());
    }
    if matches!(&*kind, "NodePort" | "LoadBalancer") {
        fill(spec, &["externalTrafficPolicy"], "Cluster".into());
    }
    if kind == "LoadBalancer" {
        fill(spec, &["allocateLoadBalancerNodePorts"], true.into());
    }
}

/// Assigns addresses and ports to a service, unless it has them.
pub(super) fn prepare(turn: &Turn<'_>, before: Option<&Value>, service: &mut Value) {
    if before.is_none() {
        service["status"] = json!({ "loadBalancer": {} });
    }
    let Some(spec) = part(service, "spec") else { return };
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    if kind == "ExternalName" {
        return;
    }
    keep_address(spec, before);
    give_address(turn, spec);
    if matches!(&*kind, "NodePort" | "LoadBalancer") {
        give_node_ports(turn, spec, before);
    }
}

/// Addresses that are missing in an update stay.
fn keep_address(spec: &mut Value, before: Option<&Value>) {
    let Some(then) = before.map(|before| &before["spec"]) else { return };
    for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if !then[name].is_null() {
            fill(spec, &[name], then[name].clone());
        }
    }
}

fn give_address(turn: &Turn<'_>, spec: &mut Value) {
    let [high, low] = turn.core.random_u16().to_be_bytes();
    let address = format!("10.96.{high}.{}", low.clamp(1, 254));
    fill(spec, &["clusterIP"], address.into());
    let headless = spec["clusterIP"] == "None";
    // A headless service without a selector may have endpoints of both families.
    let both = headless && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty);
    let families = if both { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) };
    let policy = if both { "RequireDualStack" } else { "SingleStack" };
    let addresses = json!([spec["clusterIP"]]);
    fill_all(spec, json!({ "clusterIPs": addresses, "ipFamilies": families, "ipFamilyPolicy": policy }));
}

fn give_node_ports(turn: &Turn<'_>, spec: &mut Value, before: Option<&Value>) {
    let then = before.map(|before| before["spec"]["ports"].clone()).unwrap_or_default();
    for port in items(spec, "ports") {
        let same = |other: &&Value| other["port"] == port["port"] && other["protocol"] == port["protocol"];
        let kept = then.as_array().into_iter().flatten().find(same).map(|other| other["nodePort"].clone());
        let new = || (30_000 + turn.core.random_u16() % 2_768).into();
        fill(port, &["nodePort"], kept.filter(|port| !port.is_null()).unwrap_or_else(new));
    }
}
