//! An embedded Kubernetes API server for tests and demos, with faults by script.
//!
//! [`TestApi`] is a server with real HTTP that clients cannot tell from a kube-apiserver, as long as they want objects
//! and
//! not what controllers make of them; [`Api`] is the same without the network. What can go wrong is in [`faults`].
//!
//! The values of built-in kinds are checked only in part. Accepted, and kept as written, are among others: negative
//! replicas,
//! ports out of range, `data` of a Secret that is no base64, any schedule of a CronJob, any quantity. JSON that is
//! deeper than
//! 128 is refused. A deleted pod on a node goes at once unless [`ApiOptions::graceful_pods`] is set. There is no
//! `/openapi/v2`
//! and no `/metrics`.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_client::config::{Config, KubeConfigOptions, Kubeconfig};
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
//! // Any client finds it by its address or by a kubeconfig.
//! let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig())?;
//! let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
//! let maps = kube_client::Api::<ConfigMap>::namespaced(config.try_into()?, "shop");
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

pub mod faults;
mod go;
pub mod managed;
pub mod patch;
pub mod sample;
pub mod schema;

mod api;
mod builder;
mod builtin;
mod call;
mod catalog;
mod clock;
mod core;
mod definitions;
mod garbage;
mod kinds;
mod kubeconfig;
mod namespaces;
mod refusal;
mod requests;
mod server;
mod store;
mod tls;
mod tokens;
mod write;

pub use api::{Api, Gvr};
pub use builder::{Builder, StartError};
pub use call::{Call, Target, Verb};
pub use core::ApiOptions;
pub use requests::{Logged, Requests};
pub use server::{History, TestApi};
pub use store::Backup;
pub use tokens::Tokens;
pub use write::Patch;
