//! A server whose time stands still, and requests to it.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use testapi::{Api, ApiOptions};

/// The namespace `default` of the core.
pub(crate) const CORE: &str = "/api/v1/namespaces/default";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// An answer: status code, body, warnings.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
    pub(crate) warnings: Vec<String>,
}

impl Answer {
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    /// The body without what is different each time.
    pub(crate) fn plain(mut self) -> Value {
        if let Some(metadata) = self.body["metadata"].as_object_mut() {
            for name in ["uid", "managedFields", "creationTimestamp", "resourceVersion", "namespace"] {
                metadata.remove(name);
            }
        }
        self.body
    }

    pub(crate) fn version(&self) -> u64 {
        self.body["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    }

    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.body);
        self.body
    }
}

pub(crate) struct Server {
    pub(crate) api: Api,
    runtime: tokio::runtime::Runtime,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut ApiOptions)) -> Self {
        let mut options = ApiOptions::default();
        options.clock = Arc::new(|| UNIX_EPOCH + Duration::from_secs(1_795_262_069));
        change(&mut options);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        Self { api: Api::new(options), runtime: runtime.unwrap() }
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Answer {
        let request = Request::builder().method(method).uri(path).header("user-agent", "probe/1.0 (x)");
        let request = request.header("content-type", content_type).body(body.into()).unwrap();
        let response = self.runtime.block_on(self.api.handle(request));
        let code = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.map(|warning| warning.to_str().unwrap().to_owned()).collect();
        let body = self.runtime.block_on(response.into_body().collect()).unwrap().to_bytes();
        let body = serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into());
        Answer { code, body, warnings }
    }

    pub(crate) fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, "application/json", body.to_string())
    }

    pub(crate) fn put(&self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, "application/json", body.to_string())
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "application/json", "")
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, "application/json", "")
    }

    pub(crate) fn delete_with(&self, path: &str, options: Value) -> Answer {
        self.send("DELETE", path, "application/json", options.to_string())
    }

    pub(crate) fn merge(&self, path: &str, patch: Value) -> Answer {
        self.send("PATCH", path, MERGE, patch.to_string())
    }

    pub(crate) fn apply(&self, path: &str, config: Value) -> Answer {
        self.send("PATCH", path, APPLY, config.to_string())
    }

    /// The changes of a resource after a revision: change, name, revision.
    pub(crate) fn events(&self, api_version: &str, plural: &str, after: u64) -> Vec<(String, String, u64)> {
        let collection = self.api.collection(&testapi::Gvr::new(api_version, plural)).unwrap();
        let mut events = collection.events(after).unwrap();
        let batch = self
            .runtime
            .block_on(async { tokio::time::timeout(Duration::from_millis(1), events.next()).await });
        let events = batch.map(|batch| batch.unwrap().events).unwrap_or_default();
        let told = |event: serve::Event| {
            (format!("{:?}", event.change), event.object.name.to_string(), event.object.revision)
        };
        events.into_iter().map(told).collect()
    }

    #[track_caller]
    pub(crate) fn refuses(&self, answer: Answer, code: StatusCode, message: &str) {
        assert_eq!((answer.code, answer.message()), (code.as_u16(), message), "{}", answer.body);
    }
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": "1" } })
}

/// With more metadata.
pub(crate) fn with(mut object: Value, name: &str, value: impl Into<Value>) -> Value {
    object["metadata"][name] = value.into();
    object
}
