//! Resources that are hidden for a while: 404 for their requests, and absent from discovery.

use std::collections::BTreeSet;

use http::{HeaderMap, Response, StatusCode, header};
use http_body_util::BodyExt;
use parking_lot::RwLock;
use serde_json::Value;
use serve::{Body, full};

use super::framing::accept_json_only;
use super::words;
use crate::call::{Call, Target};

#[derive(Debug, Default)]
pub(super) struct Hidden(RwLock<BTreeSet<String>>);

impl Hidden {
    pub(super) fn hide(&self, resource: &str) {
        self.0.write().insert(resource.to_owned());
    }

    pub(super) fn show(&self, resource: &str) {
        self.0.write().remove(resource);
    }

    pub(super) fn clear(&self) {
        self.0.write().clear();
    }

    fn all(&self) -> BTreeSet<String> {
        self.0.read().clone()
    }

    /// The response to a request for a hidden resource.
    pub(super) fn refuse(&self, call: &Call) -> Option<Response<Body>> {
        let target = call.target.as_ref()?;
        self.all().iter().any(|hidden| target.is(hidden)).then(|| {
            // A custom resource is often the only one of its group, which is hidden with it.
            match target.group.contains('.') && !target.group.ends_with(".k8s.io") {
                true => words::no_page(),
                false => words::answer(&words::no_resource()),
            }
        })
    }

    /// Whether a response may list hidden resources.
    pub(super) fn concerns(&self, call: &Call) -> bool {
        let discovery = call.path.starts_with("/api") && call.target.is_none();
        discovery && !self.0.read().is_empty()
    }

    /// Makes discovery uncompressed and JSON, so that it can be filtered.
    pub(super) fn prepare(headers: &mut HeaderMap) {
        headers.remove(header::ACCEPT_ENCODING);
        headers.remove(header::IF_NONE_MATCH);
        accept_json_only(headers);
    }

    /// A discovery document without hidden resources. The documents are small, so the body is collected first.
    pub(super) async fn filter(&self, response: Response<Body>) -> Response<Body> {
        if response.status() != StatusCode::OK {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        let Ok(text) = body.collect().await.map(http_body_util::Collected::to_bytes) else {
            return words::answer(&super::fault::internal_error("discovery broke off"));
        };
        let Ok(mut document) = serde_json::from_slice(&text) else {
            return Response::from_parts(parts, full(text));
        };
        let hidden = self.all();
        let is_hidden = |group: &str, resource: &str| {
            let (resource, group) = (resource.to_owned(), group.to_owned());
            let target = Target {
                group,
                version: String::new(),
                resource,
                namespace: None,
                name: None,
                subresource: None,
            };
            hidden.iter().any(|hidden| target.is(hidden))
        };
        remove(&mut document, is_hidden);
        parts.headers.remove(header::ETAG);
        parts.headers.remove(header::CONTENT_LENGTH);
        Response::from_parts(parts, full(document.to_string()))
    }
}

/// Removes resources from the lists of one group and version, and from aggregated discovery.
fn remove(document: &mut Value, is_hidden: impl Fn(&str, &str) -> bool) {
    if document["kind"] == "APIResourceList" {
        let group_version = document["groupVersion"].as_str().unwrap_or_default().to_owned();
        let group = group_version.split_once('/').map_or("", |(group, _)| group);
        retain(&mut document["resources"], |resource| {
            let name = resource["name"].as_str().unwrap_or_default();
            !is_hidden(group, name.split('/').next().unwrap_or_default())
        });
    }
    if document["kind"] == "APIGroupDiscoveryList" {
        retain(&mut document["items"], |item| {
            let group = item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            retain(&mut item["versions"], |version| {
                retain(&mut version["resources"], |resource| {
                    !is_hidden(&group, resource["resource"].as_str().unwrap_or_default())
                })
            })
        });
    }
}

/// Keeps the wanted items of a list; `false` if none is left.
fn retain(list: &mut Value, wanted: impl FnMut(&mut Value) -> bool) -> bool {
    let Some(list) = list.as_array_mut() else { return true };
    list.retain_mut(wanted);
    !list.is_empty()
}
