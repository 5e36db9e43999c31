//! The server behind a factory: how to reach it and what is known of it.

mod version;

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer_core::reflector::{FirstList, ReflectorConfig, StreamingList};
use informer_core::wire::ApiStatus;
use tokio::time::Instant;

use crate::resource::ResourceType;
use crate::shared::{Settings, lock};
use crate::transport::Transport;
use crate::{FirstListChoice, StreamingListChoice};
use version::{KnownRelease, Release, Version};

pub(crate) struct Server {
    transport: Arc<dyn Transport>,
    /// What tells it from others.
    name: Option<String>,
    release: KnownRelease,
    /// Streaming lists that were refused: when, and with which words.
    refused: Mutex<HashMap<ApiGroup, (Instant, ApiStatus)>>,
}

/// A group and a version. Each is served by one server: the apiserver itself, or one that it aggregates.
type ApiGroup = (String, String);

/// From here on, consistent lists are answered from the server's cache (KEP-2340, KEP-4988).
const CONSISTENT_LIST_FROM_CACHE: Version = Version { major: 1, minor: 34 };
/// Whatever newer ones have added is not read from protobuf.
const KNOWN_MESSAGES: Version =
    Version { major: informer_protobuf::KUBERNETES.0, minor: informer_protobuf::KUBERNETES.1 };
/// Whoever gives a question up sooner does so for other reasons than that there is no answer.
const PATIENCE: Duration = Duration::from_secs(1);

impl Server {
    pub(crate) fn new(transport: Arc<dyn Transport>, name: Option<String>) -> Self {
        Self { transport, name, release: KnownRelease::default(), refused: Mutex::default() }
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
            FirstListChoice::ByServer => match self.release(settings.reflector.response_timeout).await {
                Release::Said(version) if version < CONSISTENT_LIST_FROM_CACHE => FirstList::Any,
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

    /// Whether its objects may have fields that are not read from protobuf, as far as it lets anybody know; where that cannot
    /// be known yet, they may. Asks the server, ten seconds at most; who asks gives up at `limit` if not sooner.
    pub(crate) async fn may_be_newer_than_protobuf(&self, limit: Duration) -> bool {
        match self.release(limit).await {
            Release::Said(version) => version > KNOWN_MESSAGES,
            Release::Unsaid => false,
            // Rather dear objects than poor ones.
            Release::Unanswered => true,
        }
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

    async fn release(&self, limit: Duration) -> Release {
        self.release.get(&*self.transport, PATIENCE.min(limit / 2)).await
    }
}

fn api_group(resource: &ResourceType) -> ApiGroup {
    (resource.group.clone(), resource.version.clone())
}
