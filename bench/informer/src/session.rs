//! One run: the informers, their handlers, and the commands.

use std::sync::Arc;
use std::time::{Duration, Instant};

use informer::{
    EncodingChoice, Index, Informer, Registration, SharedInformerFactory, StreamingListChoice, Transform,
};
use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use crate::arguments::{Arguments, Kept};
use crate::digest::Digest;
use crate::handler::{Counting, Told};
use crate::queues::QueueBench;
use crate::view::Measured;
use crate::{Answers, Failure, handler, lookups, reads};

/// The limit for one command; a run that takes longer has failed.
pub const LIMIT: Duration = Duration::from_secs(900);
/// The interval at which `current` looks at the caches.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

pub struct Session<T: Measured> {
    factory: Option<SharedInformerFactory>,
    /// The informers of the arguments, in their order.
    resources: Vec<String>,
    informers: Vec<Informer<T>>,
    handlers: Vec<Arc<Told>>,
    registrations: Vec<Registration>,
    by_node: Option<Index<T, String>>,
    by_ip: Option<Index<T, String>>,
    /// Work queues, which need no server.
    queues: QueueBench,
}

impl<T: Measured> Session<T> {
    pub async fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let mut session = Self {
            factory: None,
            resources: arguments.resource.iter().map(|resource| resource.text.clone()).collect(),
            informers: Vec::new(),
            handlers: Vec::new(),
            registrations: Vec::new(),
            by_node: None,
            by_ip: None,
            queues: QueueBench::default(),
        };
        let Some(kubeconfig) = &arguments.kubeconfig else { return Ok(session) };
        let factory = factory(arguments, Kubeconfig::read_from(kubeconfig)?).await?;
        session.informers =
            arguments.resource.iter().map(|resource| T::informer(&factory, resource.kind.clone())).collect();
        if let [informer] = &session.informers[..] {
            for _ in 0..arguments.subscriptions {
                let (counting, told) = Counting::new();
                session.registrations.push(informer.add_handler(counting)?);
                session.handlers.push(told);
            }
            if arguments.index {
                session.by_node = Some(informer.add_index(|pod| pod.node().map(str::to_owned)));
                session.by_ip = Some(informer.add_index(|pod| pod.ip().map(str::to_owned)));
            }
        }
        session.factory = Some(factory);
        Ok(session)
    }
}

impl<T: Measured> Answers for Session<T> {
    async fn answer(&mut self, command: &str, parameters: Value) -> Result<Value, Failure> {
        let seconds = Duration::from_secs_f64(parameters["seconds"].as_f64().unwrap_or(1.0));
        match command {
            "start" => self.start().await,
            "digest" => digest(&self.informers),
            "until" => {
                let text = |name: &str| parameters[name].as_str().unwrap_or_default().to_owned();
                self.until(&text("key"), text("resourceVersion").parse()?).await
            }
            "current" => self.current(&parameters["versions"]).await,
            "stuck" => {
                self.handlers.first().ok_or("there is no handler")?.get_stuck();
                Ok(json!({ "event": "stuck" }))
            }
            "lookups" => {
                let informer = self.informers.first().ok_or("nothing is watched")?;
                lookups::measure(informer, self.by_ip.as_ref().ok_or("there is no --index")?, seconds)
            }
            "reads" => {
                let number = |name: &str| usize::try_from(parameters[name].as_u64().unwrap_or_default());
                match (number("objects")?, number("hot")?) {
                    (objects, 0) => reads::measure(objects, seconds).await,
                    (objects, hot) => reads::measure_hot(objects, hot, seconds).await,
                }
            }
            "queue-keys" => {
                self.queues =
                    QueueBench::new(usize::try_from(parameters["items"].as_u64().unwrap_or_default())?)?;
                Ok(json!({ "event": "keys" }))
            }
            "queue-fill" => Ok(json!({ "event": "filled", "waiting": self.queues.fill() })),
            "queue" => Ok(json!({ "event": "queue", "nanoseconds": self.queues.measure()? })),
            other => Err(format!("{other:?} is no command of this program").into()),
        }
    }
}

impl<T: Measured> Session<T> {
    async fn start(&self) -> Result<Value, Failure> {
        let factory = self.factory.as_ref().ok_or("there is no --kubeconfig")?;
        let start = Instant::now();
        factory.start();
        factory.wait_for_sync_or_denial(LIMIT).await?;
        for registration in &self.registrations {
            registration.synced().await;
        }
        let seconds = start.elapsed().as_secs_f64();
        let objects: usize = self.informers.iter().map(Informer::len).sum();
        let held: usize = self.informers.iter().map(Informer::held_bytes).sum();
        Ok(json!({ "event": "synced", "objects": objects, "wallSeconds": seconds, "heldBytes": held }))
    }

    async fn until(&self, key: &str, version: u64) -> Result<Value, Failure> {
        for told in self.handlers.iter().filter(|told| !told.is_stuck()) {
            tokio::time::timeout(LIMIT, told.until(key, version)).await?;
        }
        let sum = handler::sum(&self.handlers);
        let mut reached = json!({ "event": "reached", "updates": sum.updates });
        sum.delays.say_in(&mut reached);
        Ok(reached)
    }

    /// Waits until the cache of each resource has reached that version.
    async fn current(&self, versions: &Value) -> Result<Value, Failure> {
        for (resource, informer) in self.resources.iter().zip(&self.informers) {
            let Some(version) = versions[resource].as_str() else { continue };
            let version: u64 = version.parse()?;
            while informer.resource_version().to_string().parse::<u64>().unwrap_or_default() < version {
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
        }
        Ok(json!({ "event": "current" }))
    }
}

/// The checksums of the caches.
pub fn digest<T: Measured>(informers: &[Informer<T>]) -> Result<Value, Failure> {
    let mut digest = Digest::default();
    for informer in informers {
        let snapshot = informer.snapshot();
        for object in snapshot.objects() {
            let (key, uid) = (object.key(), object.uid().to_string());
            let version = object.resource_version().to_string();
            digest.add(key.namespace().unwrap_or_default(), key.name(), &uid, &version);
        }
        if informer.resource().kind != "Pod" {
            continue;
        }
        for object in snapshot.iter().strict() {
            let object = object?;
            let Some(images) = object.images() else { break };
            let metadata = object.metadata();
            let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
            let node = object.node().unwrap_or_default();
            digest.add_pod(namespace.unwrap_or_default(), name.unwrap_or_default(), node, images);
        }
    }
    Ok(digest.event())
}

pub async fn factory(
    arguments: &Arguments,
    kubeconfig: Kubeconfig,
) -> Result<SharedInformerFactory, Failure> {
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let mut builder = SharedInformerFactory::builder(config);
    if arguments.drop_managed_fields {
        builder = builder.transform(Transform::drop_managed_fields());
    }
    if let Some(layout) = arguments.layout.map(Kept::layout) {
        builder = builder.layout(layout);
    }
    if arguments.json {
        builder = builder.encoding(EncodingChoice::Json);
    }
    if arguments.streaming {
        builder = builder.reflector(|reflector| reflector.streaming_list = StreamingListChoice::Always);
    }
    if let Some(bytes) = arguments.hot_bytes {
        builder = builder.hot_bytes(bytes);
    }
    Ok(builder.build()?)
}
