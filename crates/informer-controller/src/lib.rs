//! Kubernetes controllers on the informers of the crate [`informer`]: the work queue, the reconcile loop and leader election.

#![warn(missing_debug_implementations)]

mod caches;
pub mod changed;
pub mod conditions;
mod confirmed;
mod context;
mod controller;
pub mod election;
mod endings;
mod error;
pub mod finalizer;
pub mod gate;
mod handle;
mod host;
mod inbox;
#[cfg(all(test, loom))]
mod interleavings;
#[doc(hidden)]
pub mod internals;
mod leadership;
pub mod metrics;
mod once;
mod owned;
pub mod owners;
pub mod permissions;
mod program;
pub mod queue;
mod reconcile;
pub mod recorder;
mod request;
mod source;
mod sync;
mod trigger;
pub mod wait;
mod writer;

pub use context::Context;
pub use controller::{Controller, Runnable};
pub use error::RunError;
pub use gate::TermClient;
pub use handle::ControllerHandle;
pub use host::{Clock, Host, SystemClock};
#[doc(hidden)]
pub use host::{Observed, Observer};
pub use program::{Program, stop_signal};
pub use reconcile::{Failure, Outcome, Reconcile, With, with};
pub use source::Watched;
pub use trigger::{Trigger, Triggers};
pub use writer::{Patch, Seen, Target, WriteError, Writer};

/// The code of the page compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/controllers.md")]
struct ControllersPage;

/// The same.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-client-go.md")]
struct FromClientGoPage;

/// The same.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The same.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-kube-rs.md")]
struct FromKubeRsPage;
