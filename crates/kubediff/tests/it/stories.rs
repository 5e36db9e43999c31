//! Issue 21: stories.

mod cast;
mod random;
mod situations;
