//! Parts of `informer-core`, `informer-protobuf` and `kubediff`, run on any bytes and compared with naive models.
//!
//! A [`Target`] takes bytes and panics where a promise is broken. The fuzzer of `fuzz/` finds bytes by coverage; tests
//! draw them from seeds. Some tests of these crates use the models too, so this crate and their tests depend on each
//! other, which cargo allows.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a panic reports a finding"
)]

mod body;
mod choices;
pub mod json;
pub mod lists;
pub mod mailbox;
#[cfg(feature = "secrets")]
pub mod matrix;
mod oracle;
pub mod protobuf;
#[cfg(feature = "secrets")]
pub mod secrets;
pub mod seeds;
pub mod selectors;
pub mod store;
mod target;
#[cfg(feature = "typed")]
pub mod typed;
pub mod watches;
pub mod workloads;

pub use choices::Choices;
pub use target::{TARGETS, Target};
