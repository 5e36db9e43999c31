//! A whole controller. Each ConfigMap owns a Secret of its name, which has the same `value`. In a storm there are no Secrets:
//! a reconciliation takes a while, and some fail.

#[path = "../../shared/ledger.rs"]
mod ledger;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use informer::{Informer, Item, SharedInformerFactory};
use informer_controller::queue::Exponential;
use informer_controller::{Context, Controller, Failure as Failed, Outcome, owners, with};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use serde_json::{Value, json};

use crate::arguments::{Arguments, Work};
use crate::session::{self, LIMIT};
use crate::{Answers, Failure};
use ledger::Ledger;

/// How long a reconciliation of a storm takes.
const STORM_TIME: Duration = Duration::from_millis(20);
/// How long an object that failed waits: this long, and twice as long each time.
const RETRY: Duration = Duration::from_millis(5);
const LONGEST_RETRY: Duration = Duration::from_secs(1_000);

pub struct Owners {
    /// Its drop would end the informers.
    _factory: SharedInformerFactory,
    client: Client,
    shared: Arc<Shared>,
    work: Work,
    workers: usize,
    load: Option<PathBuf>,
}

struct Shared {
    owners: Informer<ConfigMap>,
    children: Informer<Secret>,
    ledger: Ledger,
}

impl Owners {
    pub async fn new(arguments: &Arguments, work: Work) -> Result<Self, Failure> {
        let file = arguments.kubeconfig.as_ref().ok_or("there is no --kubeconfig")?;
        let factory = session::factory(arguments, Kubeconfig::read_from(file)?).await?;
        let kubeconfig = Kubeconfig::read_from(file)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let shared = Arc::new(Shared {
            owners: factory.informer(),
            children: factory.informer(),
            ledger: Ledger::default(),
        });
        let (client, workers, load) = (Client::try_from(config)?, arguments.workers, arguments.load.clone());
        Ok(Self { _factory: factory, client, shared, work, workers, load })
    }

    async fn start(&self, objects: usize) -> Result<Value, Failure> {
        let (start, shared) = (Instant::now(), &self.shared);
        shared.ledger.expect(objects);
        if let Some(file) = &self.load {
            shared.owners.load(part(file, "owners")).await?;
            shared.children.load(part(file, "children")).await?;
        }
        let controller = Controller::new("bench", &shared.owners)
            .workers(self.workers)
            .rate_limiter(Exponential::new(RETRY, LONGEST_RETRY));
        let client = self.client.clone();
        let mut running = match self.work {
            Work::Children => {
                let controller = controller.owns(&shared.children);
                tokio::spawn(controller.run(client, with(shared.clone(), keep_child)))
            }
            Work::Storm => tokio::spawn(controller.run(client, with(shared.clone(), take_a_while))),
        };
        tokio::select! {
            ended = &mut running => {
                ended??;
                return Err("the controller has ended".into());
            }
            all = tokio::time::timeout(LIMIT, shared.ledger.until_all()) => all?,
        }
        let wall = start.elapsed().as_secs_f64();
        let first = shared.ledger.first().map(|first| first.duration_since(start).as_secs_f64());
        shared.ledger.begin_counts();
        Ok(json!({ "event": "synced", "objects": objects, "wallSeconds": wall, "firstSeconds": first }))
    }

    async fn save(&self, file: &Path) -> Result<Value, Failure> {
        let owners = self.shared.owners.save(part(file, "owners")).await?;
        let children = self.shared.children.save(part(file, "children")).await?;
        Ok(json!({ "event": "saved", "bytes": owners.bytes + children.bytes }))
    }
}

/// One of the files of a saved state.
fn part(file: &Path, name: &str) -> PathBuf {
    file.with_extension(name)
}

impl Answers for Owners {
    async fn answer(&mut self, command: &str, parameters: Value) -> Result<Value, Failure> {
        let text = |name: &str| parameters[name].as_str().unwrap_or_default().to_owned();
        match command {
            "start" => self.start(usize::try_from(parameters["objects"].as_u64().unwrap_or_default())?).await,
            "until-all" => {
                let until = self.shared.ledger.until_versions(text("versions").parse()?);
                Ok(tokio::time::timeout(LIMIT, until).await?)
            }
            "digest" => Ok(self.shared.ledger.digest()),
            "save" => self.save(text("file").as_ref()).await,
            other => Err(format!("{other:?} is no command of a controller").into()),
        }
    }
}

async fn keep_child(this: Arc<Shared>, context: Context<ConfigMap>) -> Result<Outcome, Failed> {
    let Some(owner) = context.object() else { return Ok(Outcome::Done) };
    let Some(busy) = this.ledger.begin(owner.key().name()) else { return Ok(Outcome::Done) };
    let value = owner.data.as_ref().and_then(|data| data.get("value")).cloned().unwrap_or_default();
    match context.get(&this.children, owner.key().as_str())? {
        None => drop(context.writer().create(&child(owner, &value)?).await?),
        Some(child) if value_of(&child) == Some(value.as_bytes()) => {}
        Some(child) => {
            let patch = json!({ "data": { "value": ByteString(value.into_bytes()) } });
            drop(context.writer().patch(&child, patch).await?);
        }
    }
    busy.done(&owner.metadata);
    Ok(Outcome::Done)
}

fn child(owner: &Item<ConfigMap>, value: &str) -> Result<Secret, owners::OwnerError> {
    let metadata = ObjectMeta {
        name: owner.metadata.name.clone(),
        namespace: owner.metadata.namespace.clone(),
        labels: owner.metadata.labels.clone(),
        ..ObjectMeta::default()
    };
    let data = [("value".to_owned(), ByteString(value.as_bytes().to_vec()))].into();
    let mut child = Secret { metadata, data: Some(data), ..Secret::default() };
    owners::set_controller(&mut child, owner)?;
    Ok(child)
}

fn value_of(child: &Secret) -> Option<&[u8]> {
    child.data.as_ref()?.get("value").map(|value| &value.0[..])
}

async fn take_a_while(this: Arc<Shared>, context: Context<ConfigMap>) -> Result<Outcome, Failed> {
    let Some(owner) = context.object() else { return Ok(Outcome::Done) };
    let Some(busy) = this.ledger.begin(owner.key().name()) else { return Ok(Outcome::Done) };
    tokio::time::sleep(STORM_TIME).await;
    if this.ledger.draws_failure() {
        return Err(Failed::retry("one of twenty fails"));
    }
    busy.done(&owner.metadata);
    Ok(Outcome::Done)
}
