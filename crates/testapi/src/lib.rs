//! An embedded Kubernetes API server for tests and demos, with faults by script.
//!
//! [`TestApi`] serves the Kubernetes API over real HTTP: list, watch, writes, custom resources. It has no controllers,
//! scheduler or nodes. [`Api`] is the same server without the network, for calls of Rust. [`faults`] are what can go
//! wrong. `docs/TESTAPI.md` in the repository lists faults, differences from the real server, and limits.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use serde_json::json;
//! use testapi::faults::{Fault, Refusal};
//! use testapi::{TestApi, Verb};
//!
//! let server = TestApi::builder()
//!     .object(json!({
//!         "apiVersion": "v1", "kind": "ConfigMap",
//!         "metadata": { "namespace": "shop", "name": "cart" },
//!         "data": { "currency": "EUR" },
//!     }))
//!     .start()
//!     .await?;
//!
//! // `config` needs the feature `kube`; other clients take `url()` or `kubeconfig()`.
//! let maps = kube_client::Api::<ConfigMap>::namespaced(server.config().try_into()?, "shop");
//! assert_eq!(maps.get("cart").await?.data.unwrap()["currency"], "EUR");
//!
//! // The next read fails, and the one after it does not.
//! let fault = server.faults().on(Verb::Get.of("configmaps")).once(Fault::Refuse(Refusal::InternalError));
//! assert!(maps.get("cart").await.is_err());
//! assert_eq!(fault.hits(), 1);
//! assert!(maps.get("cart").await.is_ok());
//!
//! let log: Vec<_> = server.requests().all().iter().map(ToString::to_string).collect();
//! assert_eq!(log[1], "2 GET /api/v1/namespaces/shop/configmaps/cart -> 500");
//! server.stop().await;
//! # Ok(()) }
//! ```

// A public handle is in the structs of other programs, which want to derive `Debug`.
#![warn(missing_debug_implementations)]

pub mod faults;
mod go;
pub mod managed;
pub mod patch;
pub mod sample;
pub mod schema;

mod answer;
mod api;
mod builder;
mod call;
mod catalog;
mod clock;
mod controllers;
mod core;
mod definitions;
mod kinds;
mod kubeconfig;
mod object;
mod recent;
mod refusal;
mod requests;
mod server;
mod store;
#[cfg(feature = "tls")]
mod tls;
mod tokens;
mod turn;
mod wait;
mod workloads;
mod write;

pub use api::{Api, Gvr};
pub use builder::{Builder, StartError};
pub use call::{Call, Target, Verb};
pub use core::ApiOptions;
pub use requests::{Logged, Requests};
pub use server::{History, TestApi};
pub use store::Backup;
pub use tokens::Tokens;
pub use wait::WaitError;
pub use write::Patch;
