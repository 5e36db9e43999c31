//! Issue 21: stories.

pub(crate) mod cast;
#[cfg(feature = "demo")]
mod demo;
pub(crate) mod random;
mod situations;
