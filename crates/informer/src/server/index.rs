//! Reads the index of a server's OpenAPI documents, which has a hash for each group and version (L14).

use std::collections::HashMap;
use std::time::Duration;

use futures_util::StreamExt;
use http::header::{ACCEPT, CONNECTION};
use tokio::time::timeout;

use super::Server;
use crate::transport::Transport;

const TIMEOUT: Duration = Duration::from_secs(10);
/// The limit for the index. One of sixty groups takes 10 KB.
const LIMIT: usize = 4 * 1024 * 1024;

#[derive(serde::Deserialize)]
struct Index {
    paths: HashMap<String, Document>,
}

#[derive(serde::Deserialize)]
struct Document {
    #[serde(rename = "serverRelativeURL")]
    address: String,
}

impl Server {
    /// The address of each document, which contains its hash, by group and version as in `apis/apps/v1`.
    pub(super) async fn read_schemas(&self) -> Option<HashMap<String, String>> {
        let index = timeout(TIMEOUT, index(&**self.transport())).await.ok()??;
        Some(index.paths.into_iter().map(|(path, document)| (path, document.address)).collect())
    }
}

/// The index, if the server shows it. It has no entity tag that would avoid repeated downloads. Over HTTP/1.1 its
/// connection is closed afterwards: an idle one may break unnoticed, and the next watch would be sent on it.
async fn index(transport: &dyn Transport) -> Option<Index> {
    let request =
        http::Request::get("/openapi/v3").header(ACCEPT, "application/json").header(CONNECTION, "close");
    let response = transport.send(request.body(Vec::new()).ok()?).await.ok()?;
    if response.head.status != http::StatusCode::OK {
        return None;
    }
    let mut content = response.into_content();
    let mut body = Vec::new();
    while let Some(chunk) = content.next().await {
        body.extend_from_slice(&chunk.ok()?);
        if body.len() > LIMIT {
            return None;
        }
    }
    serde_json::from_slice(&body).ok()
}
