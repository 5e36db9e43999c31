//! A whole controller. Each ConfigMap owns a Secret of its name, which has the same `value`. In a storm there are no Secrets:
//! a reconciliation takes a while, and some fail.

#[path = "../../shared/ledger.rs"]
mod ledger;

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Patch, PatchParams, PostParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::ObjectMeta;
use kube::runtime::controller::{self, Action};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{Controller, WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Value, json};

use crate::arguments::{Arguments, Work};
use crate::{Answers, Failure};
use ledger::Ledger;

/// How long a reconciliation of a storm takes.
const STORM_TIME: Duration = Duration::from_millis(20);
/// How long an object that failed in a storm waits. Hardly any fails twice in a row.
const RETRY: Duration = Duration::from_millis(5);
/// How long an object waits after an error of the server: what the examples of kube-rs wait.
const RETRY_SERVER: Duration = Duration::from_secs(5);

pub(crate) struct Owners {
    client: Client,
    work: Work,
    workers: u16,
    ledger: Arc<Ledger>,
}

struct Shared {
    client: Client,
    children: Store<Secret>,
    ledger: Arc<Ledger>,
}

#[derive(Debug)]
pub(crate) enum Failed {
    Server(kube::Error),
    Drawn,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server(error) => error.fmt(f),
            Self::Drawn => f.write_str("one of twenty fails"),
        }
    }
}

impl std::error::Error for Failed {}

impl From<kube::Error> for Failed {
    fn from(error: kube::Error) -> Self {
        Self::Server(error)
    }
}

impl Owners {
    pub(crate) async fn new(arguments: &Arguments, work: Work) -> Result<Self, Failure> {
        let file = arguments.kubeconfig.as_ref().ok_or("there is no --kubeconfig")?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(Kubeconfig::read_from(file)?, &options).await?;
        let client = Client::try_from(config)?;
        Ok(Self { client, work, workers: arguments.workers, ledger: Arc::default() })
    }

    async fn start(&self, objects: usize) -> Result<Value, Failure> {
        let begin = Instant::now();
        self.ledger.expect(objects);
        let (client, settings) = (self.client.clone(), controller::Config::default());
        let owners = Controller::new(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
            .with_config(settings.concurrency(self.workers));
        let (children, writer) = reflector::store();
        let shared = Arc::new(Shared { client: client.clone(), children, ledger: self.ledger.clone() });
        match self.work {
            Work::Children => {
                let watch = watcher(Api::<Secret>::all(client), watcher::Config::default());
                // `owns` alone keeps no cache, so that each reconciliation would have to ask the server. The cache has a
                // task of its own: a controller whose workers wait for the cache would not read this stream any more.
                let (sender, touched) = futures::channel::mpsc::unbounded();
                let watch = watch.default_backoff().reflect(writer).touched_objects();
                tokio::spawn(watch.for_each(move |child| {
                    // The receiver lives as long as the controller.
                    let _ = sender.unbounded_send(child);
                    ready(())
                }));
                shared.children.wait_until_ready().await?;
                tokio::spawn(run(owners.owns_stream(touched), keep_child, shared));
            }
            Work::Storm => {
                tokio::spawn(run(owners, take_a_while, shared));
            }
        }
        self.ledger.until_all().await;
        let wall = begin.elapsed().as_secs_f64();
        let first = self.ledger.first().map(|first| first.duration_since(begin).as_secs_f64());
        self.ledger.begin_counts();
        Ok(json!({"event": "synced", "objects": objects, "wallSeconds": wall, "firstSeconds": first}))
    }
}

impl Answers for Owners {
    async fn answer(&mut self, command: &str, parameters: Value) -> Result<Value, Failure> {
        match command {
            "start" => self.start(usize::try_from(parameters["objects"].as_u64().unwrap_or_default())?).await,
            "until-all" => {
                let versions = parameters["versions"].as_str().unwrap_or_default().parse()?;
                Ok(self.ledger.until_versions(versions).await)
            }
            "digest" => Ok(self.ledger.digest()),
            _ => Err(format!("a controller of kube-rs has no {command:?}").into()),
        }
    }
}

fn run<R: Future<Output = Result<Action, Failed>> + Send + 'static>(
    owners: Controller<ConfigMap>,
    reconcile: fn(Arc<ConfigMap>, Arc<Shared>) -> R,
    shared: Arc<Shared>,
) -> impl Future<Output = ()> {
    let retry = |_: Arc<ConfigMap>, error: &Failed, _: Arc<Shared>| match error {
        Failed::Drawn => Action::requeue(RETRY),
        Failed::Server(error) => {
            eprintln!("kube-rs: {error}");
            Action::requeue(RETRY_SERVER)
        }
    };
    owners.run(reconcile, retry, shared).for_each(|_| ready(()))
}

async fn keep_child(owner: Arc<ConfigMap>, shared: Arc<Shared>) -> Result<Action, Failed> {
    let Some(busy) = shared.ledger.begin(&owner.name_any()) else { return Ok(Action::await_change()) };
    let (namespace, name) = (owner.namespace().unwrap_or_default(), owner.name_any());
    let value = owner.data.as_ref().and_then(|data| data.get("value")).cloned().unwrap_or_default();
    let api = Api::<Secret>::namespaced(shared.client.clone(), &namespace);
    match shared.children.get(&ObjectRef::new(&name).within(&namespace)) {
        None => drop(api.create(&PostParams::default(), &child(&owner, value)).await?),
        Some(child) if value_of(&child) == Some(value.as_bytes()) => {}
        Some(_) => {
            let patch = json!({"data": {"value": ByteString(value.into_bytes())}});
            api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        }
    }
    busy.done(&owner.metadata);
    Ok(Action::await_change())
}

fn child(owner: &ConfigMap, value: String) -> Secret {
    let metadata = ObjectMeta {
        name: owner.metadata.name.clone(),
        namespace: owner.metadata.namespace.clone(),
        labels: owner.metadata.labels.clone(),
        owner_references: owner.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    let data = BTreeMap::from([("value".to_owned(), ByteString(value.into_bytes()))]);
    Secret { metadata, data: Some(data), ..Secret::default() }
}

fn value_of(child: &Secret) -> Option<&[u8]> {
    child.data.as_ref()?.get("value").map(|value| &value.0[..])
}

async fn take_a_while(owner: Arc<ConfigMap>, shared: Arc<Shared>) -> Result<Action, Failed> {
    let Some(busy) = shared.ledger.begin(&owner.name_any()) else { return Ok(Action::await_change()) };
    tokio::time::sleep(STORM_TIME).await;
    if shared.ledger.draws_failure() {
        return Err(Failed::Drawn);
    }
    busy.done(&owner.metadata);
    Ok(Action::await_change())
}
