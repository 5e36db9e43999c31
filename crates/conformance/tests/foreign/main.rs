//! Clients that nobody here wrote, against the embedded server: what they understand is Kubernetes.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at a surprise, its helpers too"
)]

mod encodings;
mod kube_runtime;
mod kubectl;
mod providers;
mod replicas;
