//! A resource that is known only at run time: a dynamic informer on a custom resource, in one namespace, with a handler
//! for additions, updates and deletions.
//!
//! The resource need not exist yet. While its definition is missing, the informer waits, and its status says so.
//!
//! `cargo run -p informer --example dynamic -- widgets.v1.example.com Widget default`, until Ctrl-C

#![expect(clippy::print_stdout, reason = "an example says what it sees")]

use std::error::Error;

use futures_util::StreamExt;
use informer::kube::DynamicObject;
use informer::kube::core::ResourceExt;
use informer::{Deleted, Handler, Item, Previous, ResourceType, SharedInformerFactory};

struct Log;

impl Handler<DynamicObject> for Log {
    async fn on_add(&mut self, object: Item<DynamicObject>, _is_in_initial_list: bool) {
        println!("added {}: {}", object.name_any(), object.data["spec"]);
    }

    async fn on_update(&mut self, old: Previous<DynamicObject>, new: Item<DynamicObject>) {
        // The replaced version is decoded only because this asks for it.
        match old.get() {
            Ok(old) => println!("updated {}: {} -> {}", new.name_any(), old.data["spec"], new.data["spec"]),
            Err(error) => println!("updated {}: {error}", new.name_any()),
        }
    }

    async fn on_delete(&mut self, deleted: Deleted<DynamicObject>) {
        println!("deleted {}", deleted.key().name());
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [resource, kind, namespace] = arguments().ok_or("say PLURAL.VERSION.GROUP, KIND and NAMESPACE")?;

    let config = informer::kube::Config::infer().await?;
    let factory = SharedInformerFactory::builder(config).build()?.in_namespace(&namespace);
    let objects = factory.informer_of::<DynamicObject>(
        resource_type(&resource, &kind).ok_or("say it as PLURAL.VERSION.GROUP")?,
    );
    let _log = objects.add_handler(Log)?;
    factory.start();

    let mut status = objects.status_changes();
    let watched = async {
        while let Some(status) = status.next().await {
            println!("{resource} in {namespace}: {status}");
        }
    };
    tokio::select! {
        () = watched => {}
        end = tokio::signal::ctrl_c() => end?,
    }
    factory.shutdown().await;
    Ok(())
}

fn arguments() -> Option<[String; 3]> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    arguments.try_into().ok()
}

/// Parses a name in kubectl's syntax. `SharedInformerFactory::informer_named` asks the server instead, which also knows the
/// kind and the scope, but only for resources that exist already.
fn resource_type(name: &str, kind: &str) -> Option<ResourceType> {
    let (plural, rest) = name.split_once('.')?;
    let (version, group) = rest.split_once('.').unwrap_or((rest, ""));
    Some(ResourceType {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: plural.to_owned(),
        kind: kind.to_owned(),
        namespaced: true,
    })
}
