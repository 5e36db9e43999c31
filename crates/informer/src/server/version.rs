//! The server's Kubernetes release: fetched on demand, and fetched again when the answer is old.

use std::sync::Mutex;
use std::time::Duration;

use futures_util::StreamExt;
use http::StatusCode;
use tokio::time::{Instant, timeout};

use crate::lock::lock;
use crate::transport::Transport;

/// A release of Kubernetes, as precise as the decisions here need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub(super) major: u32,
    pub(super) minor: u32,
}

/// The known release of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Release {
    /// The server reported this version, now or with its last report.
    Said(Version),
    /// The server does not report its version, and never did.
    Unsaid,
    /// The server did not answer the last request.
    #[default]
    Unanswered,
}

/// The release of one server, with the age of that knowledge.
#[derive(Default)]
pub(super) struct KnownRelease {
    known: Mutex<Known>,
    /// Held by the task that asks. The other tasks wait for its answer.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    release: Release,
    /// The last reported version.
    version: Option<Version>,
    /// Until then no request is needed.
    until: Option<Instant>,
    /// Counts the completed requests.
    asked: u64,
}

/// How long an answer is used. A server upgrade ends the watches, and their next requests must ask the new server. Requests
/// that come at the same time share one answer.
const GOOD_FOR: Duration = Duration::from_secs(10);
/// The time limit of a request. A server that does not answer must not block a caller for long, nor many callers in turn.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long no request is sent after an unanswered one.
const SILENT_FOR: Duration = Duration::from_secs(60);
/// The limit for a response, which has a few hundred bytes.
const LIMIT: usize = 64 * 1024;

/// A request for the version. If it is dropped, it counts as unanswered, because its caller waited in vain. A drop within
/// `patience` does not count: the caller was stopped for another reason.
struct Question<'a> {
    known: &'a KnownRelease,
    asked: Instant,
    patience: Duration,
}

impl KnownRelease {
    /// The release. It is fetched unless that happened in the last seconds. Takes ten seconds at most.
    ///
    /// # Cancel safety
    ///
    /// Safe. If the caller stops waiting after more than `patience`, no request follows for a minute. If it stops sooner,
    /// the next caller asks.
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
            let reply = ask(transport).await;
            // A reply has arrived, so the drop of the question must not count as a missing answer.
            std::mem::forget(question);
            self.note(reply)
        };
        timeout(TIMEOUT, asking).await.unwrap_or(Release::Unanswered)
    }

    /// Asks now. Returns whether the server answered, possibly with an error status.
    pub(super) async fn ask(&self, transport: &dyn Transport) -> bool {
        let reply = ask(transport).await;
        let is_answer = !matches!(reply, Reply::None);
        self.note(reply);
        is_answer
    }

    /// The known release, if it is recent enough.
    fn recent(&self) -> Option<Release> {
        let known = lock(&self.known);
        known.until.is_some_and(|until| Instant::now() < until).then_some(known.release)
    }

    /// Notes a reply. A server that no longer reports its version keeps the last one.
    fn note(&self, reply: Reply) -> Release {
        let said = match reply {
            Reply::Said(said) => said,
            // The request that needs the release will show the reason, and may succeed.
            Reply::None | Reply::Undecided => return self.unanswered(None),
        };
        let mut known = lock(&self.known);
        if let Some(version @ Version { major, minor }) = said
            && known.version.replace(version) != Some(version)
        {
            tracing::debug!(version.major = major, version.minor = minor, "the server's version");
        }
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

/// The result of a request for the version.
enum Reply {
    /// The server was not reached.
    None,
    /// The server rejected the credentials, is overloaded, or is starting.
    Undecided,
    /// The version. `None` if the server forbids the request, or sends something that is not a version.
    Said(Option<Version>),
}

async fn ask(transport: &dyn Transport) -> Reply {
    let Ok(request) = http::Request::get("/version").body(Vec::new()) else { return Reply::None };
    let Ok(response) = transport.send(request).await else { return Reply::None };
    match response.head.status {
        status if status.is_success() => {}
        StatusCode::UNAUTHORIZED | StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
            return Reply::Undecided;
        }
        status if status.is_server_error() => return Reply::Undecided,
        _ => return Reply::Said(None),
    }
    let mut content = response.into_content();
    let mut body = Vec::new();
    while let Some(chunk) = content.next().await {
        let Ok(chunk) = chunk else { return Reply::Undecided };
        body.extend_from_slice(&chunk);
        if body.len() > LIMIT {
            return Reply::Said(None);
        }
    }
    Reply::Said(Version::from_json(&body))
}

impl Version {
    /// Decodes a document like `{"major":"1","minor":"36+"}`. Providers append to the minor version.
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
