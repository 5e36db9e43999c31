//! The server behind a factory: how to reach it and what is known of it.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use informer_core::reflector::{FirstList, ReflectorConfig, StreamingList};
use informer_core::wire::ApiStatus;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::resource::ResourceType;
use crate::shared::{Settings, lock};
use crate::transport::Transport;
use crate::{FirstListChoice, StreamingListChoice};

pub(crate) struct Server {
    transport: Arc<dyn Transport>,
    /// What tells it from others.
    name: Option<String>,
    version: OnceCell<Version>,
    /// Streaming lists that were refused: when, and with which words.
    refused: Mutex<HashMap<ApiGroup, (Instant, ApiStatus)>>,
}

/// A group and a version. Each is served by one server: the apiserver itself, or one that it aggregates.
type ApiGroup = (String, String);

/// A Kubernetes version, as far as it decides anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    major: u32,
    minor: u32,
}

/// From here on, consistent lists are answered from the server's cache (KEP-2340, KEP-4988).
const CONSISTENT_LIST_FROM_CACHE: Version = Version { major: 1, minor: 34 };
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);
/// An answer of `/version` is a few hundred bytes.
const VERSION_LIMIT: usize = 64 * 1024;

impl Server {
    pub(crate) fn new(transport: Arc<dyn Transport>, name: Option<String>) -> Self {
        Self { transport, name, version: OnceCell::new(), refused: Mutex::default() }
    }

    pub(crate) fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The settings, with what depends on the server decided.
    pub(crate) async fn reflector_config(&self, settings: &Settings) -> ReflectorConfig {
        let first_list = match settings.first_list {
            FirstListChoice::Consistent => FirstList::Consistent,
            FirstListChoice::Any => FirstList::Any,
            FirstListChoice::ByServer => match self.version_in_time().await {
                Some(version) if version < CONSISTENT_LIST_FROM_CACHE => FirstList::Any,
                // Not knowing, rather a dear list than an old one.
                _ => FirstList::Consistent,
            },
        };
        let streaming_list = match settings.streaming_list {
            // As JSON it costs the server twice the CPU of a LIST (docs/DESIGN.md, D3a).
            StreamingListChoice::WhereItPays | StreamingListChoice::Never => StreamingList::Never,
            StreamingListChoice::Always => StreamingList::Preferred,
        };
        ReflectorConfig { first_list, streaming_list, ..settings.reflector.clone() }
    }

    /// A streaming list was refused: the others need not ask.
    pub(crate) fn streaming_list_refused(&self, resource: &ResourceType, status: ApiStatus) {
        lock(&self.refused).insert(api_group(resource), (Instant::now(), status));
    }

    /// What the server would say to a streaming list, if it refused one within `time`.
    pub(crate) fn refuses_streaming_list(
        &self,
        resource: &ResourceType,
        time: Duration,
    ) -> Option<ApiStatus> {
        let refused = lock(&self.refused);
        let (at, status) = refused.get(&api_group(resource))?;
        (at.elapsed() < time).then(|| status.clone())
    }

    /// A number that no two reflectors share.
    pub(crate) fn seed(&self) -> u64 {
        RandomState::new().build_hasher().finish()
    }

    /// A server that does not answer must not keep anybody waiting, nor each of many waiting for the others.
    async fn version_in_time(&self) -> Option<Version> {
        tokio::time::timeout(VERSION_TIMEOUT, self.version()).await.ok().flatten()
    }

    async fn version(&self) -> Option<Version> {
        self.version.get_or_try_init(|| async { self.ask_version().await.ok_or(()) }).await.ok().copied()
    }

    async fn ask_version(&self) -> Option<Version> {
        let request = http::Request::get("/version").body(Vec::new()).ok()?;
        let response = self.transport.send(request).await.ok()?;
        if !response.head.status.is_success() {
            return None;
        }
        let mut content = response.into_content();
        let mut body = Vec::new();
        while let Some(chunk) = content.next().await {
            body.extend_from_slice(&chunk.ok()?);
            if body.len() > VERSION_LIMIT {
                return None;
            }
        }
        Version::from_json(&body)
    }
}

fn api_group(resource: &ResourceType) -> ApiGroup {
    (resource.group.clone(), resource.version.clone())
}

impl Version {
    /// As in `{"major":"1","minor":"36+"}`: providers append to the minor version.
    fn from_json(json: &[u8]) -> Option<Self> {
        #[derive(serde::Deserialize)]
        struct Info {
            major: String,
            minor: String,
        }
        let info: Info = serde_json::from_slice(json).ok()?;
        let digits = |text: &str| text.split(|digit: char| !digit.is_ascii_digit()).next()?.parse().ok();
        Some(Self { major: digits(&info.major)?, minor: digits(&info.minor)? })
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn reads_the_versions_that_providers_give() {
        let version = |json: &str| Version::from_json(json.as_bytes());
        assert_eq!(version(r#"{"major":"1","minor":"36"}"#), Some(Version { major: 1, minor: 36 }));
        assert_eq!(version(r#"{"major":"1","minor":"33+","x":0}"#), Some(Version { major: 1, minor: 33 }));
        assert_eq!(version(r#"{"major":"","minor":""}"#), None);
        assert_eq!(version("<html>"), None);
    }
}
