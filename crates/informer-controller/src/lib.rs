//! Kubernetes controllers on the informers of the crate [`informer`]: the work queue, the reconcile loop, leader election
//! and shards.

#![warn(missing_debug_implementations)]

#[cfg(all(test, loom))]
mod interleavings;
pub mod metrics;
pub mod queue;
mod sync;
