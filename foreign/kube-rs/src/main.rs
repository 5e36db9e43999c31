//! A reflector of kube-rs, to be asked over stdin what it knows:
//!
//!     until NAMESPACE/NAME    answers "there" once that object is in the store
//!     state                   answers with one line of JSON: resourceVersion by key
//!     contents                the same once all is there that was at the start: objects without resourceVersion by key
//!
//! It ends with stdin.

use std::collections::BTreeMap;
use std::error::Error;
use std::future::ready;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::watch;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: foreign-kube-rs KUBECONFIG list|stream";
    let kubeconfig = Kubeconfig::read_from(arguments.next().ok_or(usage)?)?;
    let mut config = watcher::Config::default();
    match arguments.next().as_deref() {
        Some("list") => {}
        Some("stream") => config = config.streaming_lists(),
        _ => return Err(usage.into()),
    }
    let client =
        Client::try_from(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)?;

    let (store, writer) = reflector::store::<ConfigMap>();
    let (changed, mut changes) = watch::channel(());
    let stream = reflector::reflector(writer, watcher(Api::all(client), config)).default_backoff().for_each(
        move |event| {
            if let Err(error) = event {
                eprintln!("kube-rs: {error}");
            }
            changed.send_replace(());
            ready(())
        },
    );
    tokio::spawn(stream);

    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    while let Some(command) = commands.next_line().await? {
        if let Some(key) = command.strip_prefix("until ") {
            let (namespace, name) = key.split_once('/').ok_or("NAMESPACE/NAME is missing")?;
            let object = ObjectRef::new(name).within(namespace);
            while store.get(&object).is_none() {
                changes.changed().await?;
            }
            println!("there");
            continue;
        }
        let key =
            |object: &ConfigMap| format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
        if command == "contents" {
            store.wait_until_ready().await?;
            let content = |object: &ConfigMap| {
                let mut object = object.clone();
                object.metadata.resource_version = None;
                object
            };
            let contents: BTreeMap<_, _> = store.state().iter().map(|it| (key(it), content(it))).collect();
            println!("{}", serde_json::to_string(&contents)?);
            continue;
        }
        let versions: BTreeMap<_, _> = store
            .state()
            .iter()
            .map(|object| (key(object), object.resource_version().unwrap_or_default()))
            .collect();
        println!("{}", serde_json::to_string(&versions)?);
    }
    Ok(())
}
