//! Subresources other than `status` and `scale`.

use http::StatusCode;
use serde_json::{Value, json};
use serve::{Reason, Status};

use crate::clock;
use crate::object::{Meta, set_pointer, typed};
use crate::refusal::conflict;
use crate::turn::{Target, Turn};
use crate::write::{DeleteOptions, WriteOptions};

/// Handles `pods/binding`, `pods/eviction` and `serviceaccounts/token`; others are not supported.
pub(super) fn subresource(
    turn: &Turn<'_>,
    target: &Target,
    name: &str,
    body: &[u8],
    options: &WriteOptions,
) -> Result<(StatusCode, Value), Status> {
    let asked = || -> Result<Value, Status> {
        let asked: Value =
            serde_json::from_slice(body).map_err(|error| Status::bad_request(error.to_string()))?;
        if asked.is_object() { Ok(asked) } else { Err(Status::bad_request("the body is not an object")) }
    };
    match (&*target.resource.plural, name) {
        ("pods", "binding") => bind(turn, target, &asked()?, options),
        ("pods", "eviction") => evict(turn, target, &asked()?),
        ("serviceaccounts", "token") => token(turn, target, asked()?),
        _ => Err(target.not_found()),
    }
}

/// Answers requests to the kubelet of a pod's node, which does not exist. The log of a pod without a node is empty.
pub(super) fn kubelet(target: &Target, asked: &str) -> Result<(), Status> {
    let pod = typed(&target.resource, &*target.current().ok_or_else(|| target.not_found())?);
    match pod["spec"]["nodeName"].as_str().unwrap_or_default() {
        "" if asked == "log" => Ok(()),
        "" => Err(Status::bad_request(format!("pod {} does not have a host assigned", target.name))),
        node => Err(Status::new(Reason::InternalError, format!("no kubelet runs on node {node:?}"))),
    }
}

fn done() -> (StatusCode, Value) {
    let status =
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    (StatusCode::CREATED, status)
}

fn bind(
    turn: &Turn<'_>,
    target: &Target,
    binding: &Value,
    options: &WriteOptions,
) -> Result<(StatusCode, Value), Status> {
    let existing = target.current().ok_or_else(|| target.not_found())?;
    let mut pod = typed(&target.resource, &existing);
    if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
        let why = format!("pod {} is already assigned to node {node:?}", target.name);
        return Err(conflict("", "pods/binding", &target.name, &why));
    }
    set_pointer(&mut pod, "/spec/nodeName", binding["target"]["name"].clone());
    let now = turn.now();
    let scheduled = json!({ "type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": now });
    set_pointer(&mut pod, "/status/conditions", json!([scheduled]));
    if !options.dry_run {
        turn.put(target, &mut pod);
    }
    Ok(done())
}

fn evict(turn: &Turn<'_>, target: &Target, eviction: &Value) -> Result<(StatusCode, Value), Status> {
    if Meta(eviction).name() != target.name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let options = serde_json::to_vec(&eviction["deleteOptions"]).unwrap_or_default();
    let options = if eviction["deleteOptions"].is_object() { options } else { Vec::new() };
    let mut options = DeleteOptions::from_body(&options)?;
    if !options.dry_run {
        mark_as_evicted(turn, target, &mut options)?;
    }
    turn.delete(target, &options)?;
    Ok(done())
}

/// Sets the condition from which watchers learn why the pod is deleted. A version in the options is that of the pod before.
fn mark_as_evicted(turn: &Turn<'_>, target: &Target, options: &mut DeleteOptions) -> Result<(), Status> {
    const KIND: &str = "DisruptionTarget";
    let mut pod = typed(&target.resource, &*target.current().ok_or_else(|| target.not_found())?);
    options.check(target, &pod)?;
    let mut conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    if conditions.iter().any(|condition| condition["type"] == KIND && condition["status"] == "True") {
        return Ok(());
    }
    conditions.retain(|condition| condition["type"] != KIND);
    conditions.push(
        json!({ "type": KIND, "status": "True", "lastProbeTime": null, "lastTransitionTime": turn.now(),
        "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting" }),
    );
    set_pointer(&mut pod, "/status/conditions", conditions.into());
    let marked = turn.put(target, &mut pod);
    options.resource_version = options.resource_version.take().map(|_| marked.revision.to_string());
    Ok(())
}

fn token(turn: &Turn<'_>, target: &Target, mut request: Value) -> Result<(StatusCode, Value), Status> {
    let account = typed(&target.resource, &*target.current().ok_or_else(|| target.not_found())?);
    let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(3600);
    request["kind"] = "TokenRequest".into();
    request["apiVersion"] = "authentication.k8s.io/v1".into();
    request["metadata"] = json!({ "name": target.name, "namespace": target.namespace,
        "creationTimestamp": turn.now() });
    set_pointer(&mut request, "/spec/expirationSeconds", seconds.into());
    let until = clock::later(turn.time, seconds);
    let token = format!("testapi.{}.{}", Meta(&account).uid(), turn.core.new_uid());
    request["status"] = json!({ "token": token, "expirationTimestamp": clock::rfc3339(until) });
    Ok((StatusCode::CREATED, request))
}
