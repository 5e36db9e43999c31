//! Which schemas a server has, by the hashes in the index of its OpenAPI documents.
//!
//! A schema changes with a definition (defaults, pruning, conversion) and with an upgrade. Objects that nobody wrote may
//! then read differently at the same resourceVersion (L14). The index is a few kilobytes; it is asked for when a watch has begun,
//! since a server ends the watches of a definition that changes, and at most once a minute.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::StreamExt;
use http::header::{ACCEPT, ETAG, HeaderValue, IF_NONE_MATCH};
use tokio::time::{Instant, timeout};

use crate::shared::lock;
use crate::transport::Transport;

/// What a server has said.
#[derive(Default)]
pub(super) struct KnownSchemas(Mutex<Known>);

#[derive(Default)]
struct Known {
    etag: Option<HeaderValue>,
    /// By group and version, as in `apis/apps/v1`.
    schemas: HashMap<String, Schema>,
    /// Nobody has to ask before.
    until: Option<Instant>,
}

struct Schema {
    /// The address of its document, which has its hash.
    address: String,
    changes: u64,
}

/// How often the index is asked for at most.
const PACE: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(10);
/// Sixty groups take 8 KB.
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

impl KnownSchemas {
    /// Asks for the index, unless that was done within a minute. Whether something has changed.
    pub(super) async fn ask(&self, transport: &dyn Transport) -> bool {
        let etag = {
            let mut known = lock(&self.0);
            let now = Instant::now();
            if known.until.is_some_and(|until| now < until) {
                return false;
            }
            known.until = Some(now + PACE);
            known.etag.clone()
        };
        match timeout(TIMEOUT, index(transport, etag)).await {
            Ok(Some((index, etag))) => lock(&self.0).note(index, etag),
            _ => false,
        }
    }

    /// How often the schema of a group and version has changed.
    pub(super) fn changes(&self, group: &str, version: &str) -> u64 {
        let path =
            if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
        lock(&self.0).schemas.get(&path).map_or(0, |schema| schema.changes)
    }
}

impl Known {
    fn note(&mut self, index: Index, etag: Option<HeaderValue>) -> bool {
        self.etag = etag;
        let mut is_change = false;
        for (path, Document { address }) in index.paths {
            match self.schemas.get_mut(&path) {
                Some(schema) if schema.address == address => {}
                Some(schema) => {
                    schema.address = address;
                    schema.changes += 1;
                    is_change = true;
                }
                None => {
                    self.schemas.insert(path, Schema { address, changes: 0 });
                }
            }
        }
        is_change
    }
}

/// The index, if there is one that differs from that of the entity tag.
async fn index(transport: &dyn Transport, etag: Option<HeaderValue>) -> Option<(Index, Option<HeaderValue>)> {
    let mut request = http::Request::get("/openapi/v3").header(ACCEPT, "application/json");
    if let Some(etag) = etag {
        request = request.header(IF_NONE_MATCH, etag);
    }
    let response = transport.send(request.body(Vec::new()).ok()?).await.ok()?;
    if response.head.status != http::StatusCode::OK {
        return None;
    }
    let etag = response.head.headers.get(ETAG).cloned();
    let mut content = response.into_content();
    let mut body = Vec::new();
    while let Some(chunk) = content.next().await {
        body.extend_from_slice(&chunk.ok()?);
        if body.len() > LIMIT {
            return None;
        }
    }
    Some((serde_json::from_slice(&body).ok()?, etag))
}
