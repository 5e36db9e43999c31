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

/// What is known of a server's release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Release {
    /// It said so, now or last.
    Said(Version),
    /// It does not say, and never did.
    Unsaid,
    /// It did not answer when it was asked last.
    #[default]
    Unanswered,
}

/// What a server has said.
#[derive(Default)]
pub(super) struct KnownRelease {
    known: Mutex<Known>,
    /// Held by who asks: the others wait for that answer.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    release: Release,
    /// The last version that it said.
    version: Option<Version>,
    /// Nobody has to ask before.
    until: Option<Instant>,
    /// Counts the questions that have come to an end.
    asked: u64,
}

/// Servers are upgraded, and then end their watches: who comes back has to ask the new one. Many that come back at once need
/// one answer.
const GOOD_FOR: Duration = Duration::from_secs(10);
/// A server that does not answer must not keep anybody waiting, nor each of many waiting for the others.
const TIMEOUT: Duration = Duration::from_secs(10);
/// And then nobody for some time.
const SILENT_FOR: Duration = Duration::from_secs(60);
/// An answer is a few hundred bytes.
const LIMIT: usize = 64 * 1024;

/// A question under way. One that is given up, by whoever waits for what comes after it, was not answered either; unless it
/// is given up so soon that it was for other reasons: who asked was stopped.
struct Question<'a> {
    known: &'a KnownRelease,
    asked: Instant,
    patience: Duration,
}

impl KnownRelease {
    /// The release, asked for unless it was in the last seconds. Takes ten seconds at most.
    ///
    /// # Cancel safety
    ///
    /// Safe. Who gives up after more than `patience` lets nobody ask again for a minute; sooner, the next one asks.
    pub(super) async fn get(&self, transport: &dyn Transport, patience: Duration) -> Release {
        if let Some(release) = self.recent() {
            return release;
        }
        let asked = lock(&self.known).asked;
        let asking = async {
            let _one_at_a_time = self.asking.lock().await;
            {
                let known = lock(&self.known);
                if known.asked != asked {
                    return known.release;
                }
            }
            let question = Question { known: self, asked: Instant::now(), patience };
            let answer = ask(transport).await;
            std::mem::forget(question);
            match answer {
                Some(said) => self.note(said),
                // Whatever is asked next is about to find out why, and may be about to succeed.
                None => self.unanswered(None),
            }
        };
        timeout(TIMEOUT, asking).await.unwrap_or(Release::Unanswered)
    }

    /// What need not be asked for.
    fn recent(&self) -> Option<Release> {
        let known = lock(&self.known);
        known.until.is_some_and(|until| Instant::now() < until).then_some(known.release)
    }

    /// A server that does not say its version any more is taken for what it was.
    fn note(&self, said: Option<Version>) -> Release {
        let mut known = lock(&self.known);
        if let Some(version) = said.filter(|version| known.version != Some(*version)) {
            tracing::debug!(version.major, version.minor, "the server's version");
        }
        known.version = said.or(known.version);
        known.release = known.version.map_or(Release::Unsaid, Release::Said);
        known.until = Some(Instant::now() + GOOD_FOR);
        known.asked += 1;
        known.release
    }

    fn unanswered(&self, until: Option<Instant>) -> Release {
        let mut known = lock(&self.known);
        known.release = Release::Unanswered;
        known.until = until;
        known.asked += 1;
        known.release
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if self.asked.elapsed() > self.patience {
            self.known.unanswered(Some(Instant::now() + SILENT_FOR));
        }
    }
}

/// What the server says: nothing, or something that is no version or forbids to ask.
async fn ask(transport: &dyn Transport) -> Option<Option<Version>> {
    let request = http::Request::get("/version").body(Vec::new()).ok()?;
    let response = transport.send(request).await.ok()?;
    match response.head.status {
        status if status.is_success() => {}
        // It does not know the credentials yet, has too much to do, or is starting.
        StatusCode::UNAUTHORIZED | StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
            return None;
        }
        status if status.is_server_error() => return None,
        _ => return Some(None),
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
