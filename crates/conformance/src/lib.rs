//! The common parts of the contract's tests.
//!
//! - [`Rig`]: a namespace of a server, seen directly by the test and through a proxy by the informers.
//! - [`Proxy`]: carries connections, cuts them, freezes them, turns them away.
//! - [`Wire`]: records the requests of informers, and can change responses.
//! - [`Actor`]: a process of a story, which the test freezes and kills.
//! - [`Told`]: the notifications of a subscription, checked to form a legal chain.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "only tests use this, and a test may stop at a surprise, its helpers too"
)]

mod access;
#[cfg(unix)]
mod actor;
mod foreign;
mod proxy;
mod rig;
mod server;
mod told;
mod wait;
mod wire;

#[cfg(unix)]
pub use actor::Actor;
pub use foreign::{Foreign, Replica, build_examples};
pub use proxy::Proxy;
pub use rig::{Rig, config_map, custom_resource, impatient};
pub use server::{Kind, Needs, TOKEN};
pub use told::{Story, Told, summary};
pub use wait::{DEADLINE, status, within};
pub use wire::{Asked, Wire};
