//! A share of a collection, for programs of several processes that divide the objects among themselves.
//!
//! [`SharedInformerFactory::with_share`] makes informers that keep one share. All processes together have each object once
//! if their [`Ranges`] have each hash once.
//!
//! ```no_run
//! use informer::SharedInformerFactory;
//! use informer::share::{HashRange, Share, ShareBy, server_filters};
//! use informer::transport::KubeTransport;
//! use informer::ResourceType;
//! use k8s_openapi::api::core::v1::Pod;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = informer::kube::Config::infer().await?;
//! let probe = KubeTransport::new(config.clone())?;
//! // The lower half of the pods, by their uids.
//! let factory = SharedInformerFactory::builder(config)
//!     .ask_for_share(server_filters(&probe, &ResourceType::of::<Pod>(), None).await?)
//!     .build()?
//!     .with_share(Share::new(ShareBy::Uid, HashRange::new(0, 1 << 63)?));
//! let pods = factory.informer::<Pod>();
//! # Ok(())
//! # }
//! ```
//!
//! [`SharedInformerFactory::with_share`]: crate::SharedInformerFactory::with_share

mod probe;

pub use informer_core::share::{
    HashRange, InvalidRange, Ranges, Share, ShareBy, Unhashable, UnknownShareBy, hash,
};
pub use probe::{ProbeError, server_filters};
