//! Which schemas a server has, by the hashes in the index of its OpenAPI documents.
//!
//! A schema changes with a definition (defaults, pruning) and with an upgrade of the server. Objects that were not written
//! since may then read differently at the same resourceVersion (L14). One small request shows this for all resources. It is
//! sent soon after the first informer has started, and when a watch has ended before its timeout: a server ends the watches
//! of a changed definition. Further requests follow at growing intervals, because the index follows the definitions with a
//! delay.

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
use crate::options::resource::ResourceType;
use crate::transport::Transport;

/// The schemas that a server has reported, and when it is asked again.
pub(super) struct KnownSchemas {
    pace: Duration,
    known: Mutex<Known>,
    /// Held by the informer that asks for all informers. When that future is dropped, another informer takes over: no
    /// separate task could outlive them.
    asking: tokio::sync::Mutex<()>,
    /// Notified when a request is due earlier than what the asking informer waits for.
    sooner: Notify,
    /// The number of answers so far.
    answers: watch::Sender<u64>,
}

struct Known {
    /// The address of each document, which contains its hash, by group and version as in `apis/apps/v1`.
    addresses: HashMap<String, String>,
    asked: Option<Instant>,
    /// When the next request is due. `None` before the first informer asks.
    due: Option<Instant>,
    /// The interval until the next request.
    distance: Duration,
}

/// The longest interval between requests, if no watch ends before its timeout.
const LONGEST_DISTANCE: Duration = Duration::from_secs(600);
const SHORTEST_PACE: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit of the request that the first lists wait for.
const PATIENCE: Duration = Duration::from_secs(1);
/// The limit for the index. One of sixty groups takes 10 KB.
const LIMIT: usize = 4 * 1024 * 1024;
/// The document of the core group contains the minor version of the server, so its hash changes with each minor upgrade.
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

    /// Schedules a request because a watch has ended before its timeout. The index shows a changed definition after about a
    /// second.
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

    /// Asks once, before the first lists, so that their content belongs to a known schema. The informers that start together
    /// share the answer. A server that does not answer soon is asked later.
    pub(super) async fn learn(&self, server: &Server) {
        let is_asked = || lock(&self.known).asked.is_some();
        if is_asked() || server.recovery.is_outage() {
            return;
        }
        let _for_all = self.asking.lock().await;
        if !is_asked() {
            let index = timeout(PATIENCE, index(&**server.transport())).await.ok().flatten();
            self.note(index);
        }
    }

    /// Asks whenever a request is due, while the future is polled.
    async fn run(&self, server: &Server) {
        let _for_all = self.asking.lock().await;
        loop {
            let due = *lock(&self.known).due.get_or_insert_with(|| Instant::now() + self.pace / 10);
            tokio::select! {
                biased;
                () = self.sooner.notified() => continue,
                () = sleep_until(due) => {}
            }
            // In an outage only its probes are sent.
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
        // A document that is missing now keeps its former hash: a server that has just started does not have all of them.
        known.addresses.extend(index.paths.into_iter().map(|(path, document)| (path, document.address)));
        drop(known);
        self.answers.send_modify(|answers| *answers += 1);
    }

    /// The fingerprint of a resource's schema: the hashes of its own document and of the core group's, which shows the
    /// server's release. `None` while it is unknown.
    pub(super) fn fingerprint(&self, resource: &ResourceType) -> Option<String> {
        let root = if resource.group.is_empty() { "api" } else { "apis" };
        let path = format!("{root}/{}", resource.api_version());
        let known = lock(&self.known);
        let own = known.addresses.get(&path)?;
        let core = known.addresses.get(CORE).map(String::as_str).unwrap_or_default();
        Some(format!("{core} {own}"))
    }
}

impl Server {
    /// A stream of the fingerprints of a resource's schema: the present one, and then each different one. Objects that were
    /// not written since may read differently with another fingerprint.
    pub(crate) fn schemas(self: &Arc<Self>, resource: ResourceType) -> BoxStream<'static, String> {
        let answers = self.schemas.answers.subscribe();
        let state = (self.clone(), resource, None, answers);
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
                    biased;
                    // The sender is in the server, which this future holds.
                    _ = answers.changed() => {}
                    () = server.schemas.run(&server) => {}
                }
            }
        };
        stream::unfold(state, next).boxed()
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
