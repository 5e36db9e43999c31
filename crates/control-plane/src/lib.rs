//! A real Kubernetes control plane for tests and benchmarks: etcd, kube-apiserver and, on request,
//! kube-controller-manager.
//!
//! The servers are one Go binary, `control-plane/` in the repository, which [`build`] builds once and keeps in a cache.
//! [`ControlPlane`] runs it and ends it: a control plane lives no longer than the value, and no longer than the process
//! that holds it.
//!
//! ```no_run
//! # fn main() -> Result<(), control_plane::Error> {
//! let control_plane = control_plane::ControlPlane::builder().controller_manager(true).start()?;
//! println!("KUBECONFIG={}", control_plane.kubeconfig().display());
//! control_plane.restart()?;
//! # Ok(())
//! # }
//! ```
//!
//! Tests that do not change the control plane share one per test binary, see [`shared_or_skip`].
//!
//! This crate is synchronous: nothing in it is worth an async runtime. An async caller uses its runtime's way to run
//! blocking code.

mod binary;
mod builder;
mod error;
mod module;
mod port;
mod process;
mod release;
mod shared;
mod tool;
mod toolchain;

pub use binary::{RELEASE, build, build_release, go_mod, pinned, release};
pub use builder::Builder;
pub use error::Error;
pub use port::free_port;
pub use process::{ControlPlane, Ending};
pub use release::{NotARelease, Release};
pub use shared::{shared, shared_or_skip};
pub use tool::{nats_server_or_skip, program_or_skip, tool};
