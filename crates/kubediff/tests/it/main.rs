//! Changes and their texts, through the public interface.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at a surprise, its helpers too")]

mod at;
mod backlog;
mod blinding;
mod changes;
mod config;
mod daemon;
mod diffs;
mod keys;
mod leaks;
mod matrix;
mod mcp;
mod noise;
mod ordinary;
mod page;
mod patches;
mod queries;
mod random;
mod recorded;
mod recordings;
mod rendering;
mod routes;
mod schemas;
mod secrets;
mod stories;
mod support;
mod targets;
mod words;
