//! A reflector for each resource that the arguments name, and the handlers of the first.

use std::error::Error;
use std::future::ready;
use std::sync::Arc;
use std::time::Instant;

use futures::{Stream, StreamExt};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::ApiResource;
use kube::runtime::reflector::{self, Store, store::Writer};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Failure;
use crate::arguments::{Arguments, is_pods};
use crate::delays::Delays;
use crate::digest::Digest;
use crate::handler::Handler;
use crate::lookups::{self, Lookups};
use crate::view::View;

/// The bound of keys that wait for the slowest subscriber.
const BUFFER: usize = 1024;

pub(crate) struct Session<K: View> {
    arguments: Arguments,
    client: Option<Client>,
    stores: Vec<Store<K>>,
    handlers: Vec<Arc<Handler>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Until {
    key: String,
    resource_version: String,
}

impl<K: View> Session<K> {
    pub(crate) async fn new(arguments: Arguments) -> Result<Self, Failure> {
        let mut client = None;
        if let Some(file) = &arguments.kubeconfig {
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(Kubeconfig::read_from(file)?, &options).await?;
            client = Some(Client::try_from(config)?);
        }
        let handlers = (0..arguments.subscriptions).map(|_| Arc::default()).collect();
        Ok(Self { arguments, client, stores: Vec::new(), handlers })
    }

    pub(crate) async fn start(&mut self) -> Result<Value, Failure> {
        let begin = Instant::now();
        let client = self.client.clone().ok_or("there is no reflector without --kubeconfig")?;
        let mut handlers = self.handlers.clone();
        for resource in &self.arguments.resources {
            let store = self.reflect(client.clone(), resource, std::mem::take(&mut handlers))?;
            self.stores.push(store);
        }
        for store in &self.stores {
            store.wait_until_ready().await?;
        }
        for (handler, store) in self.handlers.iter().zip(self.stores.first().into_iter().cycle()) {
            handler.until_objects(store.len()).await;
        }
        let wall = begin.elapsed().as_secs_f64();
        let objects: usize = self.stores.iter().map(Store::len).sum();
        Ok(json!({"event": "synced", "objects": objects, "wallSeconds": wall}))
    }

    fn reflect(
        &self,
        client: Client,
        resource: &ApiResource,
        handlers: Vec<Arc<Handler>>,
    ) -> Result<Store<K>, Failure> {
        let dynamic_type = K::dynamic_type(resource);
        let stream = self.watch(Api::all_with(client, &dynamic_type));
        if let [] | [_] = handlers[..] {
            // A single consumer reads the stream itself.
            let writer = Writer::new(dynamic_type);
            let store = writer.as_reader();
            tokio::spawn(reflector::reflector(writer, stream).for_each(move |event| {
                if let Some(handler) = handlers.first() {
                    match &event {
                        Ok(Event::Apply(object) | Event::InitApply(object)) => handler.hear(object),
                        Ok(Event::Delete(object)) => handler.forget(object),
                        Ok(Event::Init | Event::InitDone) | Err(_) => {}
                    }
                }
                report(event);
                ready(())
            }));
            return Ok(store);
        }
        let writer = Writer::new_shared(BUFFER, dynamic_type);
        let store = writer.as_reader();
        for handler in handlers {
            let objects =
                K::subscribe(&writer).ok_or("kube-rs has no shared streams of objects without a type")?;
            tokio::spawn(objects.for_each(move |object| {
                handler.hear(&*object);
                ready(())
            }));
        }
        tokio::spawn(stream.reflect_shared(writer).for_each(|event| {
            report(event);
            ready(())
        }));
        Ok(store)
    }

    fn watch(&self, api: Api<K>) -> impl Stream<Item = watcher::Result<Event<K>>> + Send + use<K> {
        let mut config = watcher::Config::default();
        if self.arguments.streaming {
            config = config.streaming_lists();
        }
        let drop_managed_fields = self.arguments.drop_managed_fields;
        watcher(api, config).default_backoff().modify(move |object| {
            if drop_managed_fields {
                object.meta_mut().managed_fields = None;
            }
        })
    }

    pub(crate) fn digest(&self) -> Value {
        let mut digest = Digest::default();
        for (store, resource) in self.stores.iter().zip(&self.arguments.resources) {
            for object in store.state() {
                let meta = object.meta();
                let text = |field: &'_ Option<String>| field.clone().unwrap_or_default();
                let (namespace, name) = (text(&meta.namespace), text(&meta.name));
                digest.add(&namespace, &name, &text(&meta.uid), &text(&meta.resource_version));
                if let Some((node, images)) = object.node_and_images().filter(|_| is_pods(resource)) {
                    digest.add_pod(&namespace, &name, node, images);
                }
            }
        }
        digest.event()
    }

    pub(crate) async fn until(&self, place: Until) -> Result<Value, Failure> {
        let version = place.resource_version.parse()?;
        let (namespace, name) = place.key.split_once('/').ok_or("a key is NAMESPACE/NAME")?;
        let mut delays = Delays::default();
        let mut updates = None;
        for handler in &self.handlers {
            handler.until_version(namespace, name, version).await;
            let heard = handler.lock();
            delays.add_all(&heard.delays);
            updates = Some(heard.updates.min(updates.unwrap_or(usize::MAX)));
        }
        let updates = updates.ok_or("there is no handler")?;
        let mut reached = json!({ "event": "reached", "updates": updates });
        delays.say_in(&mut reached);
        Ok(reached)
    }

    /// Handlers run beside the reflector, which has this thread.
    pub(crate) async fn lookups(&self, wish: Lookups) -> Result<Value, Failure> {
        let (store, resource) =
            self.stores.first().zip(self.arguments.resources.first()).ok_or("there is no reflector")?;
        let (store, dynamic_type) = (store.clone(), K::dynamic_type(resource));
        tokio::task::spawn_blocking(move || lookups::run(&store, &dynamic_type, wish)).await?
    }
}

/// A reflector retries by itself; its errors are printed with their causes.
fn report<K>(event: watcher::Result<Event<K>>) {
    let Err(error) = event else { return };
    eprint!("kube-rs: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        eprint!(": {error}");
        cause = error.source();
    }
    eprintln!();
}
