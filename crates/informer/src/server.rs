//! The server behind a factory: how to reach it and what is known about it.

pub(crate) mod discovery;
mod index;
mod link;
pub mod share;
mod version;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use informer_core::engine::StreamingRefusals;
use informer_core::reflector::{FirstList, ReflectorConfig, StreamingList};
use tokio::time::{Instant, timeout};

use crate::options::settings::Settings;
use crate::transport::Transport;
use crate::{FirstListChoice, StreamingListChoice};
use informer_core::upstream::{Probe, Upstream};
use link::Links;
use version::{KnownRelease, Release, Version};

pub(crate) use link::{Inbox, Link, News};

pub(crate) struct Server {
    transport: Arc<dyn Transport>,
    /// The name that identifies the server in saved caches.
    #[cfg_attr(not(feature = "save"), expect(dead_code, reason = "only files need it"))]
    name: Option<String>,
    release: KnownRelease,
    links: Links,
    seeds: Seeds,
    streaming_refusals: Arc<StreamingRefusals>,
    /// The origin of time of all engines.
    started: OnceLock<Instant>,
}

/// From this release on, the server answers consistent lists from its cache (KEP-2340, KEP-4988).
const CONSISTENT_LIST_FROM_CACHE: Version = Version { major: 1, minor: 34 };
/// The newest release whose protobuf messages are known. Fields that later releases add would be lost.
const KNOWN_MESSAGES: Version =
    Version { major: informer_protobuf::KUBERNETES.0, minor: informer_protobuf::KUBERNETES.1 };
/// The time limit of a probe. A server that takes longer is tried by one informer at a time.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// A caller that stops waiting sooner does so for other reasons than a missing answer.
const PATIENCE: Duration = Duration::from_secs(1);

impl Server {
    /// `pace` is the shortest time between two requests for the server's schemas. All randomness follows from `seed`, if
    /// there is one.
    pub(crate) fn new(
        transport: Arc<dyn Transport>,
        name: Option<String>,
        pace: Duration,
        seed: Option<u64>,
    ) -> Self {
        let seeds = Seeds(seed.map(AtomicU64::new));
        Self {
            transport,
            name,
            release: KnownRelease::default(),
            links: Links::new(Upstream::new(seeds.next(), pace)),
            seeds,
            streaming_refusals: Arc::default(),
            started: OnceLock::new(),
        }
    }

    pub(crate) fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    #[cfg(feature = "save")]
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The reflector's configuration, with the choices that depend on the server. `asks` says whether there is something to
    /// list at once; without it the server is not asked for its release.
    pub(crate) async fn reflector_config(&self, settings: &Settings, asks: bool) -> ReflectorConfig {
        let first_list = match settings.first_list {
            FirstListChoice::Consistent => FirstList::Consistent,
            FirstListChoice::Any => FirstList::Any,
            FirstListChoice::Auto if !asks => FirstList::Consistent,
            FirstListChoice::Auto => match self.release(settings.reflector.response_timeout).await {
                Release::Said(version) if version < CONSISTENT_LIST_FROM_CACHE => FirstList::Any,
                // Without a known release, an expensive list is better than an outdated one.
                _ => FirstList::Consistent,
            },
        };
        let streaming_list = match settings.streaming_list {
            // In JSON it costs the server twice the CPU of a LIST, in protobuf it was no faster (docs/DESIGN.md, D3a).
            StreamingListChoice::Auto | StreamingListChoice::Never => StreamingList::Never,
            StreamingListChoice::Always => StreamingList::Preferred,
        };
        ReflectorConfig { first_list, streaming_list, ..settings.reflector.clone() }
    }

    /// Whether the server's objects may have fields that protobuf decoding would lose; `true` while the release is unknown.
    /// Asks the server, and waits ten seconds at most. `limit` is the time after which the caller stops waiting.
    pub(crate) async fn may_be_newer_than_protobuf(&self, limit: Duration) -> bool {
        match self.release(limit).await {
            Release::Said(version) => version > KNOWN_MESSAGES,
            Release::Unsaid => false,
            // Objects that cost more are better than incomplete ones.
            Release::Unanswered => true,
        }
    }

    /// The refused streaming lists of all informers.
    pub(crate) fn streaming_refusals(&self) -> &Arc<StreamingRefusals> {
        &self.streaming_refusals
    }

    /// The origin of time of all engines, which share what they know about the server. The first call sets it.
    pub(crate) fn started(&self) -> Instant {
        *self.started.get_or_init(Instant::now)
    }

    /// A random seed for a reflector.
    pub(crate) fn seed(&self) -> u64 {
        self.seeds.next()
    }

    async fn release(&self, limit: Duration) -> Release {
        if self.links.is_outage() {
            return Release::Unanswered;
        }
        self.release.get(&*self.transport, PATIENCE.min(limit / 2)).await
    }

    async fn probe(&self) -> Probe {
        match timeout(PROBE_TIMEOUT, self.release.ask(&*self.transport)).await {
            Ok(true) => Probe::Answered,
            Ok(false) => Probe::Failed,
            Err(_) => Probe::TimedOut,
        }
    }
}

/// The seeds of a factory: one after the other from a first one, or random.
struct Seeds(Option<AtomicU64>);

impl Seeds {
    fn next(&self) -> u64 {
        match &self.0 {
            Some(next) => next.fetch_add(1, Ordering::Relaxed),
            None => RandomState::new().build_hasher().finish(),
        }
    }
}
