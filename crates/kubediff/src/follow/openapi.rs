//! What a server says about its own API, within bounds: whatever is at its address may answer anything.

use std::collections::BTreeMap;
use std::time::Duration;

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube_client::Client;
use kube_client::client::Body;
use serde::Deserialize;
use tokio::time::timeout;

/// Where the paths of documents begin.
const ROOT: &str = "/openapi/v3";
/// The most bytes of a document.
const MOST: usize = 8 << 20;
/// A document is there within this time.
const LIMIT: Duration = Duration::from_secs(30);

/// Why there is no document. The words of the server are not in it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DocumentError {
    #[error("the server does not answer within {} s", LIMIT.as_secs())]
    Late,
    #[error("the request fails")]
    Request,
    #[error("the server refuses it with status {0}")]
    Refused(u16),
    #[error("it has more than {} MiB", MOST >> 20)]
    TooLarge,
    #[error("it is not what it should be")]
    Malformed,
}

#[derive(Deserialize)]
struct Index {
    paths: BTreeMap<String, Place>,
}

#[derive(Deserialize)]
struct Place {
    #[serde(rename = "serverRelativeURL")]
    url: String,
}

/// Where the document of each group and version (`apis/apps/v1`) is: with a hash, which changes with it. What leads elsewhere is left out.
pub(crate) async fn index(client: &Client) -> Result<BTreeMap<String, String>, DocumentError> {
    let index = document(client, ROOT).await?;
    let Index { paths } = serde_json::from_slice(&index).map_err(|_| DocumentError::Malformed)?;
    let places = paths.into_iter().map(|(name, place)| (name, place.url));
    Ok(places.filter(|(_, url)| url.strip_prefix(ROOT).is_some_and(|rest| rest.starts_with('/'))).collect())
}

/// A document of the server, which should be JSON.
pub(crate) async fn document(client: &Client, path: &str) -> Result<Vec<u8>, DocumentError> {
    timeout(LIMIT, bounded(client, path)).await.unwrap_or(Err(DocumentError::Late))
}

async fn bounded(client: &Client, path: &str) -> Result<Vec<u8>, DocumentError> {
    let request = http::Request::get(path).header(http::header::ACCEPT, "application/json");
    let request = request.body(Body::empty()).map_err(|_| DocumentError::Malformed)?;
    let answer = client.send(request).await.map_err(|_| DocumentError::Request)?;
    if !answer.status().is_success() {
        return Err(DocumentError::Refused(answer.status().as_u16()));
    }
    let collected = Limited::new(answer.into_body(), MOST).collect().await;
    let collected = collected.map_err(|error| match error.is::<LengthLimitError>() {
        true => DocumentError::TooLarge,
        false => DocumentError::Request,
    });
    Ok(collected?.to_bytes().to_vec())
}
