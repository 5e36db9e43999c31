//! The checksums of `bench/PROTOCOL.md` over the server's objects, from lists in pages.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::checksum::Digest;
use crate::server::{Failure, Server};

const PAGE: usize = 2_000;
/// The resource whose content is summed up too.
const PODS: &str = "core/v1/pods/Pod";

#[derive(Deserialize)]
struct List {
    metadata: ListMetadata,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct ListMetadata {
    #[serde(rename = "continue", default)]
    token: String,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
    #[serde(default)]
    spec: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
}

/// The digest of resources given as `GROUP/VERSION/PLURAL/KIND`.
pub async fn of(server: &Server, resources: &[String]) -> Result<Value, Failure> {
    let mut digest = Digest::default();
    let mut nodes = BTreeSet::new();
    for resource in resources {
        let has_content = resource == PODS;
        let path = path(resource).ok_or_else(|| format!("{resource:?} is no resource"))?;
        let mut token = String::new();
        loop {
            // Continue tokens hold only letters, digits, `-` and `_`, those of testapi too.
            let list: List = server.get(&format!("{path}?limit={PAGE}&continue={token}")).await?;
            for Item { metadata, spec } in &list.items {
                let Metadata { namespace, name, uid, resource_version } = metadata;
                digest.add(namespace, name, uid, resource_version);
                if has_content {
                    let node = spec["nodeName"].as_str();
                    let containers = spec["containers"].as_array().into_iter().flatten();
                    let images = containers.map(|it| it["image"].as_str().unwrap_or_default());
                    digest.add_pod(namespace, name, node.unwrap_or_default(), images);
                    nodes.extend(node.map(str::to_owned));
                }
            }
            token = list.metadata.token;
            if token.is_empty() {
                break;
            }
        }
    }
    let mut event = digest.event();
    event["nodes"] = nodes.len().into();
    Ok(event)
}

/// The digest of all objects of a resource.
pub fn path(resource: &str) -> Option<String> {
    let mut parts = resource.split('/');
    let (group, version, plural) = (parts.next()?, parts.next()?, parts.next()?);
    Some(match group {
        "core" => format!("/api/{version}/{plural}"),
        group => format!("/apis/{group}/{version}/{plural}"),
    })
}
