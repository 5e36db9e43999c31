//! Kubernetes informers for Rust.
