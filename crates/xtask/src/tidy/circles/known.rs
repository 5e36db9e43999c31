//! The remaining circles. The list only shrinks: tidy refuses a new circle, and an entry whose circle no longer exists.

/// Modules that use each other, with their parent.
pub(super) const KNOTS: &[(&str, &[&str])] = &[
    ("informer::transport::http2", &["connect", "tls"]),
    ("informer-core::engine", &["source", "writer"]),
    ("informer-core::object", &["packed", "storage"]),
    ("informer-core::object::packed", &["attempt", "choice"]),
    ("informer-core::store", &["build", "cache", "snapshot"]),
    ("informer-core::store", &["builtin", "index", "report"]),
    ("informer-core::wire", &["list", "scan", "watch"]),
    ("simulation", &["client", "content", "saving", "subscription"]),
    ("simulation", &["protobuf", "render"]),
];
