//! An embedded API server in which a test changes objects, and its kubeconfig as a file.

use std::path::Path;

use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};
use testapi::{Builder, TestApi};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) struct Shop {
    pub(crate) server: TestApi,
    kubeconfig: tempfile::NamedTempFile,
}

impl Shop {
    pub(crate) async fn open() -> Self {
        Self::with(TestApi::builder(), None).await
    }

    pub(crate) async fn with(builder: Builder, token: Option<&str>) -> Self {
        let server = builder.start().await.unwrap();
        let kubeconfig = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(kubeconfig.path(), server.kubeconfig_with(token)).unwrap();
        Self { server, kubeconfig }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        self.kubeconfig.path()
    }

    /// Creates a ConfigMap in the default namespace.
    pub(crate) async fn create(&self, name: &str, data: &str) {
        let object = json!({"metadata": {"name": name}, "data": {"k": data}});
        self.post(CONFIG_MAPS, object).await;
    }

    pub(crate) async fn patch(&self, name: &str, data: &str) {
        self.send(Method::PATCH, &format!("{CONFIG_MAPS}/{name}"), json!({"data": {"k": data}})).await;
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.send(Method::DELETE, &format!("{CONFIG_MAPS}/{name}"), Value::Null).await;
    }

    /// Creates an object.
    pub(crate) async fn post(&self, path: &str, object: Value) {
        self.send(Method::POST, path, object).await;
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: Value) {
        let content = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = Request::builder().method(method).uri(path).header("content-type", content).body(body);
        let answer = self.server.api().handle(request.unwrap()).await;
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
    }
}
