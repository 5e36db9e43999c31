//! What a server says about its own API.

use std::collections::BTreeMap;

use kube_client::{Client, Error};
use serde::Deserialize;

/// Where the paths of documents begin.
pub(crate) const ROOT: &str = "/openapi/v3";

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
pub(crate) async fn index(client: &Client) -> Result<BTreeMap<String, String>, Error> {
    let index: Index = serde_json::from_str(&document(client, ROOT).await?).map_err(Error::SerdeError)?;
    let places = index.paths.into_iter().map(|(name, place)| (name, place.url));
    Ok(places.filter(|(_, url)| url.strip_prefix(ROOT).is_some_and(|rest| rest.starts_with('/'))).collect())
}

/// A document of the server, as JSON.
pub(crate) async fn document(client: &Client, path: &str) -> Result<String, Error> {
    let request = http::Request::get(path).header(http::header::ACCEPT, "application/json");
    client.request_text(request.body(Vec::new()).map_err(Error::HttpError)?).await
}
