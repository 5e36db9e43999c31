//! Issue 21: stories.

mod cast;
#[cfg(feature = "demo")]
mod demo;
mod random;
mod situations;
