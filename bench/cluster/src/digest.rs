//! The checksums of `bench/PROTOCOL.md` over the server's objects, from lists in pages.

use serde::Deserialize;
use serde_json::{Value, json};

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
    let (mut objects, mut checksum, mut content) = (0, 0_u64, 0_u64);
    for resource in resources {
        let has_content = resource == PODS;
        let path = path(resource).ok_or_else(|| format!("{resource:?} is no resource"))?;
        let mut token = String::new();
        loop {
            // Continue tokens hold only letters, digits, `-` and `_`, those of testapi too.
            let list: List = server.get(&format!("{path}?limit={PAGE}&continue={token}")).await?;
            objects += list.items.len();
            for item in &list.items {
                checksum = checksum.wrapping_add(identity(item));
                if has_content {
                    content = content.wrapping_add(pod(item));
                }
            }
            token = list.metadata.token;
            if token.is_empty() {
                break;
            }
        }
    }
    Ok(json!({
        "event": "digest",
        "objects": objects,
        "checksum": format!("{checksum:016x}"),
        "content": format!("{content:016x}"),
    }))
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

fn identity(item: &Item) -> u64 {
    let Metadata { namespace, name, uid, resource_version } = &item.metadata;
    fnv1a(format!("{namespace}/{name}\n{uid}\n{resource_version}").as_bytes())
}

fn pod(item: &Item) -> u64 {
    let Metadata { namespace, name, .. } = &item.metadata;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut bytes = format!("{namespace}/{name}\n{}\n", text(&item.spec["nodeName"]));
    for container in item.spec["containers"].as_array().into_iter().flatten() {
        bytes.push_str(&text(&container["image"]));
        bytes.push('\n');
    }
    fnv1a(bytes.as_bytes())
}

pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
