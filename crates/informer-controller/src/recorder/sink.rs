//! The requests of events.

use std::time::Duration;

use informer::kube::core::params::{Patch, PatchParams, PostParams};
use informer::kube::core::{Request, request};
use informer::kube::{Client, client};
use informer::path_segment;
use serde_json::{Value, json};

use super::correlator::{Ended, Write};
use super::event::Reporter;

/// How long the server may take to answer.
const LIMIT: Duration = Duration::from_secs(30);

pub(super) struct Sink {
    client: Client,
    reporter: Reporter,
}

/// The answer of the server.
pub(super) enum Answer {
    Ended(Ended),
    /// The same request will not succeed later.
    Refused {
        code: u16,
        reason: String,
    },
    /// None, or not now: the same request may succeed later.
    NotNow,
}

impl Sink {
    pub(super) fn new(client: Client, reporter: Reporter) -> Self {
        Self { client, reporter }
    }

    /// The controller that reports.
    pub(super) fn reporter(&self) -> &str {
        &self.reporter.controller
    }

    pub(super) async fn send(&self, write: &Write) -> Answer {
        let Ok(request) = self.request(write) else { return Answer::Ended(Ended::Failed) };
        let answer = match tokio::time::timeout(LIMIT, self.client.request::<Value>(request)).await {
            Ok(Ok(_)) => return Answer::Ended(Ended::Done),
            Ok(Err(client::Error::Api(status))) => status,
            Ok(Err(_)) | Err(_) => return Answer::NotNow,
        };
        match (answer.code, write.update) {
            // An earlier attempt, whose answer was lost, has created it.
            (409, false) if answer.reason == "AlreadyExists" => Answer::Ended(Ended::Done),
            (404, true) => Answer::Ended(Ended::Missing),
            (429 | 500.., _) => Answer::NotNow,
            (code, _) => Answer::Refused { code, reason: answer.reason },
        }
    }

    fn request(&self, write: &Write) -> Result<http::Request<Vec<u8>>, request::Error> {
        let namespace = path_segment(write.subject.regarding.event_namespace());
        let events = Request::new(format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events"));
        if write.update {
            let patch = json!({ "series": write.series });
            return events.patch(&write.name, &PatchParams::default(), &Patch::Merge(patch));
        }
        let body = write.subject.body(&self.reporter, &write.name, write.first, write.series);
        let body = serde_json::to_vec(&body).map_err(request::Error::SerializeBody)?;
        events.create(&PostParams::default(), body)
    }
}
