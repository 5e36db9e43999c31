//! The circles that are there still. The list only shrinks: tidy refuses what is new, and what is listed and gone.

/// By their parent, modules that use each other.
pub(super) const KNOTS: &[(&str, &[&str])] = &[
    ("informer-protobuf", &["members", "node", "walk"]),
    ("serve", &["answer", "discovery", "openapi"]),
    ("serve", &["negotiate", "protobuf", "render"]),
    ("testapi", &["core", "definitions", "garbage", "kinds", "namespaces", "write"]),
];
