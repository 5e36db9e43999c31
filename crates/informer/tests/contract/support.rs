//! Helpers of most tests: factories on a server, handlers that record their notifications, and waiting.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use informer::{
    Change, Changes, DecodeError, DeleteReason, Deleted, FactoryBuilder, Handler, Informer, Item, Object,
    Previous, ResourceType, SharedInformerFactory, View,
};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::server::Server;

/// Longer than anything takes, and on a paused clock over at once.
pub(crate) const LONG: Duration = Duration::from_secs(600);

pub(crate) fn pods() -> ResourceType {
    ResourceType::of::<Pod>()
}

pub(crate) fn config_maps() -> ResourceType {
    ResourceType::of::<ConfigMap>()
}

pub(crate) fn nodes() -> ResourceType {
    ResourceType::of::<Node>()
}

pub(crate) fn builder(server: &Server) -> FactoryBuilder {
    SharedInformerFactory::builder_with_transport(server.clone())
}

pub(crate) fn factory(server: &Server) -> SharedInformerFactory {
    builder(server).build().unwrap()
}

/// A server with these pods, and an informer of them that is synced and live.
pub(crate) async fn live(keys: &[&str]) -> (Server, SharedInformerFactory, Informer<Object>) {
    let server = Server::new();
    for key in keys {
        server.put("pods", key, json!({}));
    }
    let factory = factory(&server);
    let informer = started(&factory).await;
    (server, factory, informer)
}

/// The factory's informer of pods, synced and live.
pub(crate) async fn started(factory: &SharedInformerFactory) -> Informer<Object> {
    let informer = factory.informer_of::<Object>(pods());
    factory.start();
    informer.wait_for_sync(LONG).await.unwrap();
    until("the watch runs", || matches!(informer.status(), informer::Status::Live { .. })).await;
    informer
}

/// Waits, letting the paused clock go on in small steps.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..100_000 {
        for _ in 0..20 {
            if is_so() {
                return;
            }
            tokio::task::yield_now().await;
        }
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    panic!("waited in vain until {what}");
}

/// Waits for something that must come by itself; a failure does not hang.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LONG, future).await.expect("waited in vain")
}

/// Lets everything run that can, without any time passing.
pub(crate) async fn settle() {
    for _ in 0..500 {
        tokio::task::yield_now().await;
    }
}

/// Waits until the cache has what the server has.
pub(crate) async fn caught_up<T: View>(server: &Server, informer: &Informer<T>) {
    until("the cache has what the server has", || cached(informer) == content(server)).await;
}

/// `key@version` of everything in the cache, sorted.
pub(crate) fn cached<T: View>(informer: &Informer<T>) -> Vec<String> {
    let mut cached: Vec<_> = informer.snapshot().objects().map(|object| format!("{object:?}")).collect();
    cached.sort();
    cached
}

/// The same of the server's pods.
pub(crate) fn content(server: &Server) -> Vec<String> {
    let mut content: Vec<_> =
        server.content("pods").iter().map(|(key, version)| format!("{key}@{version}")).collect();
    content.sort();
    content
}

/// Tasks of this runtime, this one not counted.
pub(crate) fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Takes the changes up to and with `Synced`.
pub(crate) async fn until_synced<T: View>(changes: &mut Changes<T>) -> Vec<Change<T>> {
    let mut told = Vec::new();
    loop {
        let change = next(changes).await;
        let synced = matches!(change, Change::Synced);
        told.push(change);
        if synced {
            return told;
        }
    }
}

pub(crate) async fn next<T: View>(changes: &mut Changes<T>) -> Change<T> {
    tokio::time::timeout(LONG, changes.next()).await.expect("nothing was told").expect("it has ended")
}

/// Fields of an object with labels.
pub(crate) fn labelled(label: &str, value: &str) -> Value {
    json!({ "metadata": { "labels": { label: value } } })
}

/// The notifications of a handler, line by line.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn push(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    pub(crate) fn has(&self, line: &str) -> bool {
        self.0.lock().unwrap().iter().any(|other| other == line)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub(crate) async fn until(&self, line: &str) {
        until(&format!("the handler is told `{line}`; it was told {:?}", self.lines()), || self.has(line))
            .await;
    }
}

/// Writes down what it is told: `add shop/cart@7 initial`.
pub(crate) struct Recorder(pub(crate) Log);

impl Recorder {
    pub(crate) fn new() -> (Self, Log) {
        let log = Log::default();
        (Self(log.clone()), log)
    }
}

impl Handler<Object> for Recorder {
    async fn on_add(&mut self, object: Item<Object>, is_in_initial_list: bool) {
        self.0.push(format!("add {object:?}{}", if is_in_initial_list { " initial" } else { "" }));
    }

    async fn on_update(&mut self, old: Previous<Object>, new: Item<Object>) {
        self.0.push(format!("update {old:?} -> {new:?}"));
    }

    async fn on_delete(&mut self, deleted: Deleted<Object>) {
        self.0.push(gone(&deleted));
    }

    async fn on_resync(&mut self, object: Item<Object>) {
        self.0.push(format!("resync {object:?}"));
    }

    async fn on_synced(&mut self) {
        self.0.push("synced");
    }

    async fn on_lagged(&mut self, dropped: u64) {
        self.0.push(format!("lagged {dropped}"));
    }

    async fn on_undecodable(&mut self, error: DecodeError) {
        self.0.push(format!("undecodable {}", error.key()));
    }
}

/// A change of a stream, as the recorder writes it.
pub(crate) fn short(change: &Change<Object>) -> String {
    match change {
        Change::Added { new: object, initial, .. } => {
            format!("add {object:?}{}", if *initial { " initial" } else { "" })
        }
        Change::Updated { old, new, .. } => format!("update {old:?} -> {new:?}"),
        Change::Deleted(deleted) => gone(deleted),
        Change::Resynced(object) => format!("resync {object:?}"),
        Change::Synced => "synced".to_owned(),
        Change::Lagged(dropped) => format!("lagged {dropped}"),
        Change::Undecodable(error) => format!("undecodable {}", error.key()),
        _ => format!("{change:?}"),
    }
}

fn gone(deleted: &Deleted<Object>) -> String {
    let why = match deleted.reason() {
        DeleteReason::Observed => "",
        DeleteReason::Missed => " missed",
        DeleteReason::LeftView => " left",
        DeleteReason::DeletedOrDeselected => " or deselected",
    };
    format!("delete {:?}{why}", deleted.last())
}
