//! kube's side of this crate: everything that a major version of kube can change.
//!
//! kube makes a major release for each release of Kubernetes. Its types are part of this crate's API: configurations,
//! clients, and the trait by which a type names its resource. So each major release of kube is a major release of
//! `informer` as well. `informer-core` and `informer-protobuf` do not depend on kube and keep their versions. This module
//! re-exports the kube release that this version works with: a program that takes kube's types from here cannot get the
//! wrong version.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use informer::SharedInformerFactory;
//! use informer::kube::client::api::{Api, Patch, PatchParams};
//! use informer::kube::{Client, Config};
//! use k8s_openapi::api::core::v1::Pod;
//!
//! let config = Config::infer().await?;
//! let api: Api<Pod> = Api::default_namespaced(Client::try_from(config.clone())?);
//! let patch = serde_json::json!({ "metadata": { "labels": { "seen": "yes" } } });
//! api.patch("cart", &PatchParams::default(), &Patch::Merge(patch)).await?;
//! let factory = SharedInformerFactory::new(config)?;
//! # Ok(())
//! # }
//! ```

mod factory;
mod identity;
mod resource;
mod selectors;

pub use identity::FromObject;
pub use kube_client as client;
pub use kube_client::{Client, Config};
pub use kube_core as core;
pub use kube_core::metadata::PartialObjectMeta;
pub use kube_core::{DynamicObject, Resource};
pub use selectors::{selector, to_selector};
