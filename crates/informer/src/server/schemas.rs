//! Which schemas a server has, by the hashes in the index of its OpenAPI documents.
//!
//! A schema changes with a definition (defaults, pruning) and with an upgrade of the server. Objects that nobody wrote may
//! then read differently at the same resourceVersion (L14). One small request tells this for all resources. It is sent
//! soon after the first informer has started and when a watch has ended before its time, because a server ends the watches of a
//! definition that changes; then at growing distances, because the index follows the definitions with a delay.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use http::header::{ACCEPT, CONNECTION};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::Server;
use crate::lock::lock;
use crate::resource::ResourceType;
use crate::transport::Transport;

/// What a server has said, and when it is asked.
pub(super) struct KnownSchemas {
    pace: Duration,
    known: Mutex<Known>,
    /// Held by the informer that asks for all. When that is dropped, another one takes over: there is no task that could
    /// outlive them.
    asking: tokio::sync::Mutex<()>,
    /// A question is due sooner than what the asking informer waits for.
    sooner: Notify,
    /// Counts the answers.
    answers: watch::Sender<u64>,
}

struct Known {
    /// The address of each document, which has its hash; by group and version, as in `apis/apps/v1`.
    addresses: HashMap<String, String>,
    asked: Option<Instant>,
    /// Not before somebody asks.
    due: Option<Instant>,
    /// From a question to the next one.
    distance: Duration,
}

/// The server is asked that often even if no watch ends before its time.
const LONGEST_DISTANCE: Duration = Duration::from_secs(600);
const SHORTEST_PACE: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(10);
/// Sixty groups take 10 KB.
const LIMIT: usize = 4 * 1024 * 1024;
/// The document of the core group has the minor version of the server in it, so its hash changes with each such upgrade.
const CORE: &str = "api/v1";

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
    pub(super) fn new(pace: Duration) -> Self {
        let pace = pace.clamp(SHORTEST_PACE, LONGEST_DISTANCE);
        Self {
            pace,
            known: Mutex::new(Known { addresses: HashMap::new(), asked: None, due: None, distance: pace }),
            asking: tokio::sync::Mutex::default(),
            sooner: Notify::new(),
            answers: watch::Sender::default(),
        }
    }

    /// A watch has ended before its time. The index follows what was the reason after a second or so.
    pub(super) fn ask_soon(&self) {
        let mut known = lock(&self.known);
        known.distance = self.pace;
        let soon = Instant::now() + self.pace / 10;
        let due = known.asked.map_or(soon, |asked| soon.max(asked + self.pace));
        if known.due.is_some_and(|later| due < later) {
            known.due = Some(due);
            self.sooner.notify_one();
        }
    }

    /// Asks whenever that is due, for as long as the future is polled.
    async fn run(&self, server: &Server) {
        let _for_all = self.asking.lock().await;
        loop {
            // Beside the initial lists it would open connections of which some stay idle.
            let due = *lock(&self.known).due.get_or_insert_with(|| Instant::now() + self.pace / 10);
            tokio::select! {
                () = self.sooner.notified() => continue,
                () = sleep_until(due) => {}
            }
            // In an outage nothing is sent but its probes.
            let index = if server.recovery.is_outage() {
                None
            } else {
                timeout(TIMEOUT, index(&**server.transport())).await.ok().flatten()
            };
            self.note(index);
        }
    }

    fn note(&self, index: Option<Index>) {
        let mut known = lock(&self.known);
        let now = Instant::now();
        known.asked = Some(now);
        known.due = Some(now + known.distance);
        known.distance = (known.distance * 2).min(LONGEST_DISTANCE);
        let Some(index) = index else { return };
        // A document that is missing now keeps its hash: a server that has just started does not have them all.
        known.addresses.extend(index.paths.into_iter().map(|(path, document)| (path, document.address)));
        drop(known);
        self.answers.send_modify(|answers| *answers += 1);
    }

    /// What tells the schema of a resource from another one, and the server from another version of it. `None` while it
    /// is unknown.
    fn fingerprint(&self, resource: &ResourceType) -> Option<String> {
        let root = if resource.group.is_empty() { "api" } else { "apis" };
        let path = format!("{root}/{}", resource.api_version());
        let known = lock(&self.known);
        let own = known.addresses.get(&path)?;
        let core = known.addresses.get(CORE).map(String::as_str).unwrap_or_default();
        Some(format!("{core} {own}"))
    }
}

impl Server {
    /// The fingerprint of a resource's schema, now and whenever it changes, if it is not the `known` one. Unchanged objects may
    /// read differently with another one.
    pub(crate) fn schemas(
        self: &Arc<Self>,
        resource: ResourceType,
        known: Option<String>,
    ) -> BoxStream<'static, String> {
        let answers = self.schemas.answers.subscribe();
        let state = (self.clone(), resource, known, answers);
        let next = async |(server, resource, known, mut answers): (
            Arc<Self>,
            _,
            Option<String>,
            watch::Receiver<u64>,
        )| {
            loop {
                answers.mark_unchanged();
                let now = server.schemas.fingerprint(&resource);
                if let Some(now) = now.filter(|now| known.as_ref() != Some(now)) {
                    return Some((now.clone(), (server, resource, Some(now), answers)));
                }
                tokio::select! {
                    // The sender lives as long as the server, which this has.
                    _ = answers.changed() => {}
                    () = server.schemas.run(&server) => {}
                }
            }
        };
        stream::unfold(state, next).boxed()
    }
}

/// The index, if the server shows it. It has no entity tag that would spare its repetition. Over HTTP/1.1 its connection is closed
/// afterwards: one that lies idle may die unnoticed, and the next watch would be sent on it.
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
