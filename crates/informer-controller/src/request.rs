//! Requests to the API server, as kube's client carries them.

use informer::kube::core::Request;
use informer::kube::core::params::ListParams;
use informer::kube::{Client, client};
use informer::{ObjectKey, ResourceType, ResourceVersion, path_segment};
use informer_core::control::Found;
use serde_json::Value;

/// The path of a resource's collection, in a namespace or across all.
pub(crate) fn collection(resource: &ResourceType, namespace: Option<&str>) -> Request {
    let [group, version, plural] =
        [&resource.group, &resource.version, &resource.plural].map(|part| path_segment(part));
    let base = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    Request::new(match namespace {
        Some(namespace) => format!("{base}/namespaces/{}/{plural}", path_segment(namespace)),
        None => format!("{base}/{plural}"),
    })
}

/// The newest resourceVersion of a collection. An unset version in the request demands the most recent state
/// ([resource versions](https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list)).
pub(crate) async fn current_version(
    client: &Client,
    resource: &ResourceType,
    namespace: Option<&str>,
) -> Result<ResourceVersion, client::Error> {
    let request = collection(resource, namespace).list_metadata(&ListParams::default().limit(1));
    let list: Value = client.request(request.map_err(client::Error::BuildRequest)?).await?;
    Ok(version(&list))
}

/// The selected objects, as the server has them now, and its version.
pub(crate) async fn found(
    client: &Client,
    resource: &ResourceType,
    namespace: Option<&str>,
    selection: &ListParams,
) -> Result<(Vec<Found>, ResourceVersion), client::Error> {
    let request = collection(resource, namespace).list_metadata(selection);
    let list: Value = client.request(request.map_err(client::Error::BuildRequest)?).await?;
    Ok((list["items"].as_array().into_iter().flatten().filter_map(identity).collect(), version(&list)))
}

fn identity(object: &Value) -> Option<Found> {
    let metadata = &object["metadata"];
    let key = ObjectKey::new(metadata["namespace"].as_str(), metadata["name"].as_str()?).ok()?;
    Some(Found { key, version: version(object) })
}

pub(crate) fn version(object: &Value) -> ResourceVersion {
    ResourceVersion::new(object["metadata"]["resourceVersion"].as_str().unwrap_or_default())
}
