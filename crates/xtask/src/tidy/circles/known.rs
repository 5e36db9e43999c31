//! The circles that are there still. The list only shrinks: tidy refuses what is new, and what is listed and gone.

/// By their parent, modules that use each other.
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
    ("testapi", &["core", "definitions", "garbage", "kinds", "namespaces", "write"]),
];
