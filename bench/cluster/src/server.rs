//! The server: a real one, reached by its kubeconfig, or testapi in this process. The program talks to both over HTTP,
//! and loads testapi directly.

use std::path::{Path, PathBuf};

use futures_util::stream::{FuturesUnordered, Stream, StreamExt};
use http::{Method, Request};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testapi::{Call, TestApi};

use crate::metrics;

pub use kube_client::core::WatchEvent as Event;

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Events of each resource that testapi keeps.
const HISTORY: usize = 200_000;

pub struct Server {
    client: Client,
    testapi: Option<TestApi>,
    parallel: usize,
}

impl Server {
    pub async fn real(kubeconfig: PathBuf, parallel: usize) -> Result<Self, Failure> {
        Ok(Self { client: connect(&kubeconfig).await?, testapi: None, parallel })
    }

    pub async fn testapi(kubeconfig: &Path, seed: u64, parallel: usize) -> Result<Self, Failure> {
        let server = TestApi::builder().tls().seed(seed).history(HISTORY).start().await?;
        std::fs::write(kubeconfig, server.kubeconfig())?;
        Ok(Self { client: connect(kubeconfig).await?, testapi: Some(server), parallel })
    }

    pub fn in_process(&self) -> Option<&TestApi> {
        self.testapi.as_ref()
    }

    pub async fn version(&self) -> Result<String, Failure> {
        let info: Value = self.get("/version").await?;
        let name = if self.testapi.is_some() { "testapi" } else { "kube-apiserver" };
        Ok(format!("{name} {}", info["gitVersion"].as_str().unwrap_or_default()))
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        Ok(self.client.request(Request::get(path).body(Vec::new())?).await?)
    }

    /// Creates an object; an existing one stays as it is.
    pub async fn post(&self, path: &str, body: &Value) -> Result<(), Failure> {
        match self.send(Method::POST, path, "application/json", body).await {
            Err(error) if is_conflict(&error) => Ok(()),
            other => other.map(drop),
        }
    }

    pub async fn merge_patch(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.send(Method::PATCH, path, "application/merge-patch+json", body).await
    }

    pub async fn delete(&self, path: String) -> Result<(), Failure> {
        let deleted: Value = self.client.request(Request::delete(path).body(Vec::new())?).await?;
        drop(deleted);
        Ok(())
    }

    /// The events of a watch.
    pub async fn watch<T: DeserializeOwned + Clone>(
        &self,
        path: &str,
    ) -> Result<impl Stream<Item = Result<Event<T>, Failure>>, Failure> {
        let events = self.client.request_events::<T>(Request::get(path).body(Vec::new())?).await?;
        Ok(events.map(|event| event.map_err(Failure::from)))
    }

    async fn send(&self, method: Method, path: &str, kind: &str, body: &Value) -> Result<Value, Failure> {
        let request = Request::builder().method(method).uri(path).header(http::header::CONTENT_TYPE, kind);
        Ok(self.client.request(request.body(serde_json::to_vec(body)?)?).await?)
    }

    /// Runs something for each number, several at a time.
    pub async fn for_each<F: Future<Output = Result<(), Failure>>>(
        &self,
        numbers: impl Iterator<Item = usize>,
        mut work: impl FnMut(usize) -> F,
    ) -> Result<(), Failure> {
        let mut running = FuturesUnordered::new();
        for number in numbers {
            if running.len() >= self.parallel
                && let Some(result) = running.next().await
            {
                result?;
            }
            running.push(work(number));
        }
        while let Some(result) = running.next().await {
            result?;
        }
        Ok(())
    }

    /// The resources that can be listed and watched, as `GROUP/VERSION/PLURAL/KIND`, in the preferred version of each
    /// group.
    pub async fn resources(&self) -> Result<Value, Failure> {
        let groups: Value = self.get("/apis").await?;
        let preferred = groups["groups"].as_array().into_iter().flatten();
        let mut versions: Vec<String> = vec!["v1".to_owned()];
        versions.extend(
            preferred
                .filter_map(|group| group["preferredVersion"]["groupVersion"].as_str().map(str::to_owned)),
        );
        let mut found = Vec::new();
        for version in versions {
            let root = if version.contains('/') { "apis" } else { "api" };
            let list: Value = self.get(&format!("/{root}/{version}")).await?;
            let (group, version) = version.split_once('/').unwrap_or(("core", &version));
            for resource in list["resources"].as_array().into_iter().flatten() {
                let can = |verb: &str| {
                    resource["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!(verb)))
                };
                let name = resource["name"].as_str().unwrap_or_default();
                // Events also exist in the core group.
                let repeated = group == "events.k8s.io";
                if can("list") && can("watch") && !name.contains('/') && !repeated {
                    let kind = resource["kind"].as_str().unwrap_or_default();
                    found.push(format!("{group}/{version}/{name}/{kind}"));
                }
            }
        }
        Ok(json!({ "event": "resources", "resources": found }))
    }

    /// The number of requests that the server has got until now, including those of this program, with a verb and a resource that
    /// count.
    pub async fn requests(&self, count: fn(&str, &str) -> bool) -> Result<Value, Failure> {
        let requests = match &self.testapi {
            Some(testapi) => {
                let asked = testapi.requests().all();
                let counts = |call: &Call| {
                    count(call.verb.as_str(), call.target.as_ref().map_or("", |target| &target.resource))
                };
                asked.iter().filter(|asked| counts(&asked.call)).count() as f64
            }
            None => {
                let request = Request::get("/metrics").body(Vec::new())?;
                metrics::requests(&self.client.request_text(request).await?, count)
            }
        };
        Ok(json!({ "event": "requests", "count": requests }))
    }

    /// Only testapi can do this; the harness restarts a real server.
    pub fn expire(&self) -> Result<Value, Failure> {
        let testapi = self.testapi.as_ref().ok_or("this is not the server")?;
        testapi.api().restart(false);
        testapi.disconnect_all();
        Ok(json!({ "event": "expired" }))
    }
}

async fn connect(kubeconfig: &Path) -> Result<Client, Failure> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

fn is_conflict(error: &Failure) -> bool {
    matches!(error.downcast_ref(), Some(kube_client::Error::Api(status)) if status.code == 409)
}
