//! A typical controller: for each changed pod it reads the pod, its node and the other pods of its owner. Its queue
//! holds each key once.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use informer::{
    Deleted, Handler, Index, Informer, Item, Lister, Previous, Registration, SharedInformerFactory, Uid,
};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube_client::config::Kubeconfig;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use crate::arguments::Arguments;
use crate::delays::{Delays, SENT_AT};
use crate::handler::NAMESPACE;
use crate::session::{self, LIMIT};
use crate::{Answers, Failure};

/// The number of pods in each ReplicaSet.
const PODS_OF_A_SET: usize = 10;

pub struct Controller {
    factory: SharedInformerFactory,
    pods: Informer<Pod>,
    caches: Arc<Caches>,
    queue: Arc<Queue>,
    registration: Registration,
    done: Arc<Done>,
}

/// The caches that the controller reads.
struct Caches {
    pods: Lister<Pod>,
    nodes: Lister<Node>,
    by_owner: Index<Pod, Uid>,
}

/// The queue: keys in order, each once.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    added: Notify,
}

#[derive(Default)]
struct Waiting {
    order: VecDeque<Arc<str>>,
    keys: HashSet<Arc<str>>,
}

struct Enqueue(Arc<Queue>);

/// The counts, and the last version of each object that `until` may ask for.
#[derive(Default)]
struct Done {
    sum: Mutex<Sum>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Sum {
    count: usize,
    /// Reconciliations that found no ready node, or a wrong number of siblings.
    incomplete: usize,
    ready: usize,
    delays: Delays,
    /// Delays count once the initial list was reconciled.
    is_running: bool,
    /// The looks at the hot set before that.
    before: Looks,
    versions: HashMap<String, u64>,
}

/// How often the hot set was asked for a value, and the bytes that it takes.
#[derive(Default)]
struct Looks {
    hits: u64,
    misses: u64,
    bytes: usize,
}

impl Sum {
    /// The counts start once the initial list was reconciled.
    fn begin(&mut self, before: Looks) {
        let versions = std::mem::take(&mut self.versions);
        *self = Self { is_running: true, versions, before, ..Self::default() };
    }
}

impl Controller {
    pub async fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let kubeconfig = arguments.kubeconfig.as_ref().ok_or("there is no --kubeconfig")?;
        let factory = session::factory(arguments, Kubeconfig::read_from(kubeconfig)?).await?;
        let (pods, nodes) = (factory.informer::<Pod>(), factory.informer::<Node>());
        let by_owner = pods.add_controller_index();
        let queue = Arc::new(Queue::default());
        let registration = pods.add_handler(Enqueue(queue.clone()))?;
        let caches = Arc::new(Caches { pods: pods.lister(), nodes: nodes.lister(), by_owner });
        Ok(Self { factory, pods, caches, queue, registration, done: Arc::default() })
    }

    async fn start(&self) -> Result<Value, Failure> {
        let start = Instant::now();
        self.factory.start();
        self.factory.wait_for_sync_or_denial(LIMIT).await?;
        let (caches, queue, done) = (self.caches.clone(), self.queue.clone(), self.done.clone());
        tokio::spawn(async move {
            loop {
                let key = queue.next().await;
                done.note(&key, caches.look(&key));
                // Handlers run on this thread too.
                tokio::task::yield_now().await;
            }
        });
        self.registration.synced().await;
        let pods = self.pods.len();
        // The sentinel does not count.
        self.done.until(|sum| sum.count + 1 >= pods && self.queue.is_empty()).await;
        let wall = start.elapsed().as_secs_f64();
        let looks = self.looks();
        self.done.sum().begin(looks);
        Ok(json!({ "event": "synced", "objects": pods, "wallSeconds": wall }))
    }

    fn looks(&self) -> Looks {
        let metrics = self.factory.metrics().hot;
        metrics.iter().fold(Looks::default(), |sum, set| Looks {
            hits: sum.hits + set.hits,
            misses: sum.misses + set.misses,
            bytes: sum.bytes + set.bytes,
        })
    }

    async fn until(&self, key: &str, version: u64) -> Value {
        self.done.until(|sum| sum.versions.get(key).is_some_and(|done| *done >= version)).await;
        let Looks { hits, misses, bytes } = self.looks();
        let sum = self.done.sum();
        let mut reached = json!({
            "event": "reached",
            "updates": sum.count,
            "incomplete": sum.incomplete,
            "ready": sum.ready,
            "hits": hits - sum.before.hits,
            "misses": misses - sum.before.misses,
            "hotBytes": bytes,
        });
        sum.delays.say_in(&mut reached);
        reached
    }
}

impl Answers for Controller {
    async fn answer(&mut self, command: &str, parameters: Value) -> Result<Value, Failure> {
        match command {
            "start" => self.start().await,
            "digest" => session::digest(std::slice::from_ref(&self.pods)),
            "until" => {
                let text = |name: &str| parameters[name].as_str().unwrap_or_default().to_owned();
                Ok(self.until(&text("key"), text("resourceVersion").parse()?).await)
            }
            other => Err(format!("{other:?} is no command of a controller").into()),
        }
    }
}

impl Caches {
    /// Returns the pod, how many pods of its owner are ready, and whether nothing was missing.
    fn look(&self, key: &str) -> Option<(Item<Pod>, usize, bool)> {
        let pod = self.pods.get(key).ok()??;
        let siblings = owner(&pod).map(|owner| self.by_owner.get(&owner)).unwrap_or_default();
        let ready = siblings.iter().filter(|pod| is_pod_ready(pod)).count();
        let node = pod.spec.as_ref().and_then(|spec| self.nodes.get(spec.node_name.as_deref()?).ok()?);
        let is_complete = siblings.len() == PODS_OF_A_SET && node.is_some_and(|node| is_node_ready(&node));
        Some((pod, ready, is_complete))
    }
}

fn owner(pod: &Pod) -> Option<Uid> {
    let owners = pod.metadata.owner_references.iter().flatten();
    owners.into_iter().find(|owner| owner.controller == Some(true)).map(|owner| Uid::new(&owner.uid))
}

fn is_pod_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn is_node_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

impl Queue {
    fn add(&self, key: &str) {
        let mut waiting = self.waiting();
        if !waiting.keys.contains(key) {
            let key: Arc<str> = key.into();
            waiting.keys.insert(key.clone());
            waiting.order.push_back(key);
            self.added.notify_one();
        }
    }

    async fn next(&self) -> Arc<str> {
        loop {
            let next = {
                let mut waiting = self.waiting();
                let next = waiting.order.pop_front();
                if let Some(key) = &next {
                    waiting.keys.remove(key);
                }
                next
            };
            match next {
                Some(key) => return key,
                None => self.added.notified().await,
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting().order.is_empty()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler<Pod> for Enqueue {
    async fn on_add(&mut self, pod: Item<Pod>, _is_in_initial_list: bool) {
        self.0.add(pod.key().as_str());
    }

    async fn on_update(&mut self, _old: Previous<Pod>, new: Item<Pod>) {
        self.0.add(new.key().as_str());
    }

    async fn on_delete(&mut self, deleted: Deleted<Pod>) {
        self.0.add(deleted.key().as_str());
    }
}

impl Done {
    fn note(&self, key: &str, looked: Option<(Item<Pod>, usize, bool)>) {
        let Some((pod, ready, is_complete)) = looked else { return };
        let mut sum = self.sum();
        if pod.metadata.namespace.as_deref() == Some(NAMESPACE) {
            let version = pod.metadata.resource_version.as_deref().and_then(|version| version.parse().ok());
            sum.versions.insert(key.to_owned(), version.unwrap_or_default());
        } else {
            sum.count += 1;
            sum.ready += ready;
            sum.incomplete += usize::from(!is_complete);
            let sent_at = pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(SENT_AT));
            if let (true, Some(micros)) = (sum.is_running, sent_at.and_then(|micros| micros.parse().ok())) {
                sum.delays.add_since(micros);
            }
        }
        drop(sum);
        self.changed.send_replace(());
    }

    async fn until(&self, reached: impl Fn(&Sum) -> bool) {
        let mut changed = self.changed.subscribe();
        while !reached(&self.sum()) {
            // This struct keeps the sender, so the channel cannot be closed.
            let _ = changed.changed().await;
        }
    }

    fn sum(&self) -> MutexGuard<'_, Sum> {
        self.sum.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
