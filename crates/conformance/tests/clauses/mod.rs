//! The clauses of the contract that every server can show: one module per group. Each test has a namespace of its own;
//! those that restart the server or need another one have a server of their own.

mod cache;
mod chaos;
mod compressed;
mod controllers;
mod definitions;
mod denied;
mod dictionary;
mod factories;
mod handlers;
mod hot;
mod http2;
mod layouts;
mod list;
mod observed;
mod saving;
mod shards;
mod shares;
mod streaming;
mod watch;

use std::time::Duration;

use informer::{Informer, Object, ResourceType, SharedInformerFactory, Status, View};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

pub(crate) fn config_maps() -> ResourceType {
    ResourceType::of::<ConfigMap>()
}

/// The names of all objects in the cache, in order.
pub(crate) fn names(informer: &Informer<Object>) -> Vec<String> {
    let mut names: Vec<_> =
        informer.snapshot().objects().map(|object| object.key().name().to_owned()).collect();
    names.sort();
    names
}

/// Starts the factory, and waits for the informer's first content.
pub(crate) async fn sync<T: View>(factory: &SharedInformerFactory, informer: &Informer<T>) {
    factory.start();
    informer.wait_for_sync(Duration::from_secs(60)).await.expect("the first content");
}

pub(crate) fn json(object: &Object) -> Value {
    serde_json::from_slice(&object.json().expect("JSON")).expect("JSON")
}

pub(crate) fn is_live(status: &Status) -> bool {
    matches!(status, Status::Live { .. })
}
