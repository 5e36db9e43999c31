//! The questions of clients about themselves. They are answered and not stored: k9s and Headlamp show nothing without answers.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use informer_protobuf::Kind;
use serde_json::{Value, json};
use serve::{Body, Reason, Resource, ResourceRequest, Resources, Serve, Status};

use super::access::sight;
use crate::web::viewer::Viewer;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const READS: [&str; 3] = ["get", "list", "watch"];

/// Whether a request is such a question.
pub(super) fn is_one(request: &ResourceRequest) -> bool {
    let of = (request.group.as_str(), request.plural.as_str());
    request.name.is_none()
        && matches!(
            of,
            ("authorization.k8s.io", "selfsubjectaccessreviews" | "selfsubjectrulesreviews")
                | ("authentication.k8s.io", "selfsubjectreviews")
        )
}

/// Answers a question.
pub(super) async fn answer(
    request: &ResourceRequest,
    content: &Bytes,
    headers: &HeaderMap,
    resources: &Resources,
    viewer: &Viewer,
) -> Result<Response<Body>, Status> {
    let mut review = read(content, headers)?;
    let status = match request.plural.as_str() {
        "selfsubjectaccessreviews" => {
            let asked = &review["spec"]["resourceAttributes"];
            let text = |name: &str| asked[name].as_str().unwrap_or_default();
            let some = |name: &str| Some(text(name)).filter(|text| !text.is_empty());
            let is_read = READS.contains(&text("verb")) && text("subresource").is_empty();
            let is_it = |it: &&Arc<Resource>| *it.group == *text("group") && *it.plural == *text("resource");
            let resource = resources.iter().find(is_it);
            match (is_read, resource, asked.is_object()) {
                (true, Some(resource), _) => {
                    match sight(viewer, text("verb"), resource, some("namespace"), some("name")).await {
                        Ok(_) => json!({ "allowed": true }),
                        Err(status) if status.reason == Reason::Forbidden => {
                            json!({ "allowed": false, "reason": status.message })
                        }
                        Err(status) => return Err(status),
                    }
                }
                (true, None, _) => {
                    json!({ "allowed": false, "reason": "this is the past, which has no such resource" })
                }
                // Of other paths, the documents about the API are there to be read.
                (_, _, false) if review["spec"]["nonResourceAttributes"]["verb"] == "get" => {
                    json!({ "allowed": true })
                }
                _ => {
                    json!({ "allowed": false, "denied": true, "reason": "this is the past: it can be read alone" })
                }
            }
        }
        "selfsubjectrulesreviews" => {
            let namespace = review["spec"]["namespace"].as_str().filter(|it| !it.is_empty());
            let mut rules = Vec::new();
            for resource in resources.iter() {
                let place = namespace.filter(|_| resource.namespaced);
                if sight(viewer, "list", resource, place, None).await.is_ok() {
                    rules.push(json!({ "verbs": READS, "apiGroups": [resource.group], "resources": [resource.plural] }));
                }
            }
            let paths = json!([{ "verbs": ["get"], "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/openapi/*", "/version"] }]);
            json!({ "resourceRules": rules, "nonResourceRules": paths, "incomplete": false })
        }
        _ => {
            let name = viewer.name();
            json!({ "userInfo": { "username": name.as_deref().unwrap_or("kubediff") } })
        }
    };
    review["status"] = status;
    Ok(Serve::document(StatusCode::CREATED, &review))
}

fn read(content: &Bytes, headers: &HeaderMap) -> Result<Value, Status> {
    let unreadable = || Status::bad_request("the body of the request is no object of this kind");
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let json = if kind.starts_with(PROTOBUF) {
        let envelope = informer_protobuf::open(content).map_err(|_| unreadable())?;
        let kind = Kind::of(envelope.api_version, envelope.kind).ok_or_else(unreadable)?;
        informer_protobuf::to_json(kind, envelope.raw).map_err(|_| unreadable())?
    } else {
        content.to_vec()
    };
    let review: Value = serde_json::from_slice(&json).map_err(|_| unreadable())?;
    if review.is_object() { Ok(review) } else { Err(unreadable()) }
}
