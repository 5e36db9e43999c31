//! kube's side of this crate: all that its major versions can change.
//!
//! kube makes a major release for each release of Kubernetes. Its types are in this crate's API where configurations and
//! clients come in and where a type says which resource it stands for, so each of its major releases is a major release of
//! `informer` as well; `informer-core` and `informer-protobuf` know nothing of it and keep their versions. The re-exports
//! below are of the release that this version works with: a program that takes them from here needs no second look at
//! version numbers.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use informer::SharedInformerFactory;
//! use informer::kube::client::Api;
//! use informer::kube::{Client, Config};
//! use k8s_openapi::api::core::v1::Pod;
//!
//! let config = Config::infer().await?;
//! let api: Api<Pod> = Api::default_namespaced(Client::try_from(config.clone())?);
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
