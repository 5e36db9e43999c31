//! `kubediff serve` in this process, with a webhook and a file as its sinks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Parser;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kubediff::args::{Cli, Command};
use kubediff_history::Reader;
use serde_json::Value;
use serve::full;
use serve::http::{Server, ServerOptions, Serving};
use tokio::task::JoinHandle;

use crate::cluster::Cluster;

/// Longer than anything takes, by a clock that the test does not move.
const PATIENCE: Duration = Duration::from_secs(120);
/// When nothing has come for this long, something waits for the clock: an attempt during which the test moved the clock has failed.
const STUCK: Duration = Duration::from_secs(10);

pub(crate) struct Daemon {
    folder: tempfile::TempDir,
    address: String,
    client: Client<HttpConnector, Empty<Bytes>>,
    /// The ids of the changes that the webhook got. An attempt that failed may have come, too.
    got: Arc<Mutex<BTreeSet<String>>>,
    running: JoinHandle<()>,
    _hook: Serving,
    /// The clock moves by itself when nothing is left to do, and a task that waits for a socket seems idle: as long as a
    /// thread of the runtime waits for this, the clock stays where it is.
    _still: Sender<()>,
}

impl Daemon {
    /// Starts it with a few lines of configuration more; when it watches, and has recorded what there was.
    pub(crate) async fn start(cluster: &Cluster, more: &str) -> Self {
        let (still, until) = channel();
        // It ends when the sender is dropped.
        tokio::task::spawn_blocking(move || until.recv());
        let got = Arc::<Mutex<BTreeSet<String>>>::default();
        let ids = got.clone();
        let server = Server::bind(ServerOptions::default()).await.unwrap();
        let hook = server.serve(move |request: Request<Bytes>, _| {
            let body: Value = serde_json::from_slice(request.body()).unwrap();
            let of_body = body["changes"].as_array().unwrap().iter().map(|change| change["id"].to_string());
            ids.lock().unwrap().extend(of_body);
            async { Response::new(full(Bytes::new())) }
        });

        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let port = control_plane::free_port();
        std::fs::write(path("kubeconfig"), cluster.server.kubeconfig()).unwrap();
        std::fs::write(path("url"), format!("http://{}/", hook.address())).unwrap();
        let config = format!(
            "history: {{path: history.db}}\nlisten: 127.0.0.1:{port}\n{more}sinks:\n  hook: {{webhook: {{url: {{file: url}}}}}}\n  \
             log: {{file: {{path: changes.log}}}}\n"
        );
        std::fs::write(path("kubediff.yaml"), config).unwrap();
        let arguments =
            ["kubediff", "serve", "-c", &path("kubediff.yaml"), "--kubeconfig", &path("kubeconfig")];
        let Command::Serve(arguments) = Cli::parse_from(arguments).command else { panic!("it is `serve`") };
        let running =
            tokio::task::spawn_local(async move { kubediff::daemon::run(&arguments).await.unwrap() });
        let client = Client::builder(TokioExecutor::new()).build_http();
        let address = format!("http://127.0.0.1:{port}");
        let daemon = Self { folder, address, client, got, running, _hook: hook, _still: still };
        daemon.until(async || daemon.get("/readyz").await.is_some_and(|answer| answer == "ok\n")).await;
        // The lists are recorded a moment after they were complete.
        let all = daemon.count("kubediff_watches{state=\"watched\"}").await;
        let listed =
            || daemon.history().positions().unwrap().into_keys().filter(|name| !name.contains('@')).count();
        daemon.until(async || listed() as u64 == all).await;
        daemon
    }

    pub(crate) fn history(&self) -> Reader {
        Reader::open(self.folder.path().join("history.db")).unwrap()
    }

    /// How many changes were nothing but noise, by rule.
    pub(crate) async fn noise(&self) -> BTreeMap<String, u64> {
        let text = self.get("/metrics").await.unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix("kubediff_noise_changes_total{rule=\""));
        let counts = lines.map(|line| line.split_once("\"} ").unwrap());
        counts.map(|(rule, count)| (rule.to_owned(), count.parse().unwrap())).collect()
    }

    /// How many changes it has seen in all, noise or not.
    pub(crate) async fn taken(&self) -> u64 {
        self.noise().await.values().sum::<u64>() + self.count("kubediff_changes_total{").await
    }

    /// Waits until it has seen so many.
    pub(crate) async fn has_taken(&self, count: u64) {
        self.until(async || self.taken().await >= count).await;
    }

    /// Waits until each sink has so many changes.
    pub(crate) async fn has_told(&self, count: usize) {
        self.until(async || self.messages() >= (count, count)).await;
        self.assert_told(count);
    }

    /// Each sink has so many changes.
    #[track_caller]
    pub(crate) fn assert_told(&self, count: usize) {
        let (got, logged) = (self.got.lock().unwrap().len(), self.logged());
        assert_eq!((got, logged.lines().count()), (count, count), "{logged}");
    }

    /// How many changes the webhook has got, and the file.
    fn messages(&self) -> (usize, usize) {
        (self.got.lock().unwrap().len(), self.logged().lines().count())
    }

    fn logged(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("changes.log")).unwrap_or_default()
    }

    /// The sum of what begins with this.
    async fn count(&self, name: &str) -> u64 {
        let text = self.get("/metrics").await.unwrap();
        let values =
            text.lines().filter(|line| line.starts_with(name)).map(|line| line.rsplit(' ').next().unwrap());
        values.map(|value| value.parse::<u64>().unwrap()).sum()
    }

    async fn get(&self, path: &str) -> Option<String> {
        let answer = self.client.get(format!("{}{path}", self.address).parse().unwrap()).await.ok()?;
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        Some(String::from_utf8(body.to_vec()).unwrap())
    }

    /// Waits until it is so.
    pub(crate) async fn until(&self, is_so: impl AsyncFn() -> bool) {
        let (begin, mut moved) = (Instant::now(), Duration::ZERO);
        while !is_so().await {
            assert!(!self.running.is_finished(), "the daemon has ended");
            if begin.elapsed() > PATIENCE {
                panic!(
                    "it never comes: {:?}, {}",
                    self.messages(),
                    self.get("/metrics").await.unwrap_or_default()
                );
            }
            if begin.elapsed() > STUCK + moved {
                moved += Duration::from_secs(1);
                tokio::time::advance(Duration::from_secs(1)).await;
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.running.abort();
    }
}
