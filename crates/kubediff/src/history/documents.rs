//! The names of the documents that a history has of its server.

/// The release.
pub(crate) const VERSION: &str = "version";

/// The schemas of a group and version, by the path of both (`apis/apps/v1`).
pub(crate) fn schemas(path: &str) -> String {
    format!("openapi/v3/{path}")
}
