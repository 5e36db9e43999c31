//! What the tests of the contract have in common.
//!
//! - [`Rig`]: a namespace of a server, seen directly by the test and through a proxy by the informers.
//! - [`Proxy`]: carries connections, cuts them, freezes them, turns them away.
//! - [`Wire`]: what the informers ask the server for, and a way to change it.
//! - [`Told`]: what a subscription is told, checked to be a legal story.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "only tests use this, and a test may stop at a surprise, its helpers too"
)]

mod access;
mod foreign;
mod proxy;
mod rig;
mod server;
mod told;
mod wait;
mod wire;

pub use foreign::{Foreign, Replica};
pub use proxy::Proxy;
pub use rig::{Rig, config_map, custom_resource, impatient};
pub use server::{Kind, Needs, TOKEN};
pub use told::{Story, Told, summary};
pub use wait::{status, within};
pub use wire::{Asked, Wire};
