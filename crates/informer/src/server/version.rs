//! Which release of Kubernetes a server is: asked when somebody has to know, and again when the answer is old.

use std::sync::Mutex;
use std::time::Duration;

use futures_util::StreamExt;
use http::StatusCode;
use tokio::time::{Instant, timeout};

use crate::shared::lock;
use crate::transport::Transport;

/// A release of Kubernetes, as far as it decides anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub(super) major: u32,
    pub(super) minor: u32,
}

/// What a server has said.
#[derive(Default)]
pub(super) struct KnownVersion {
    known: Mutex<Known>,
    /// Held by who asks: the others wait for that answer.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    /// The last one that it said.
    version: Option<Version>,
    /// Nobody has to ask before.
    until: Option<Instant>,
}

/// Servers are upgraded.
const GOOD_FOR: Duration = Duration::from_secs(300);
/// A server that does not answer must not keep anybody waiting, nor each of many waiting for the others.
const TIMEOUT: Duration = Duration::from_secs(10);
/// And then nobody for some time.
const SILENT_FOR: Duration = Duration::from_secs(60);
/// An answer is a few hundred bytes.
const LIMIT: usize = 64 * 1024;

impl KnownVersion {
    /// The version, at most five minutes old, and asked for where that is not known; `None` where the server does not say
    /// it. Takes ten seconds at most.
    pub(super) async fn get(&self, transport: &dyn Transport) -> Option<Version> {
        if let Some(known) = self.recent() {
            return known;
        }
        let asking = async {
            let _one_at_a_time = self.asking.lock().await;
            if let Some(known) = self.recent() {
                return known;
            }
            match ask(transport).await {
                Some(said) => self.note(said, GOOD_FOR),
                // Whatever is asked next is about to find out why, and may be about to succeed.
                None => lock(&self.known).version,
            }
        };
        match timeout(TIMEOUT, asking).await {
            Ok(version) => version,
            Err(_) => self.note(None, SILENT_FOR),
        }
    }

    /// What need not be asked for.
    fn recent(&self) -> Option<Option<Version>> {
        let known = lock(&self.known);
        known.until.is_some_and(|until| Instant::now() < until).then_some(known.version)
    }

    /// A server that does not say its version any more is taken for what it was.
    fn note(&self, said: Option<Version>, time: Duration) -> Option<Version> {
        let mut known = lock(&self.known);
        if let Some(version) = said.filter(|version| known.version != Some(*version)) {
            tracing::debug!(version.major, version.minor, "the server's version");
        }
        known.version = said.or(known.version);
        known.until = Some(Instant::now() + time);
        known.version
    }
}

/// What the server says: nothing, or something that is no version or forbids to ask.
async fn ask(transport: &dyn Transport) -> Option<Option<Version>> {
    let request = http::Request::get("/version").body(Vec::new()).ok()?;
    let response = transport.send(request).await.ok()?;
    match response.head.status {
        status if status.is_success() => {}
        StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => return Some(None),
        // It is starting, has too much to do, or does not know the credentials yet.
        _ => return None,
    }
    let mut content = response.into_content();
    let mut body = Vec::new();
    while let Some(chunk) = content.next().await {
        body.extend_from_slice(&chunk.ok()?);
        if body.len() > LIMIT {
            return Some(None);
        }
    }
    Some(Version::from_json(&body))
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
