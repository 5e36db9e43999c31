//! How a history names its positions: what was followed, and how far each watch is recorded.
//!
//! | name | of | version |
//! |---|---|---|
//! | `deployments.apps`, `deployments.apps/cart` | a target that was followed | [`NOTHING`] |
//! | `deployments.apps@*` | its watch of all namespaces | the low watermark |
//! | `deployments.apps@shop` | its watch of one namespace | the low watermark |
//!
//! Former programs named no watches, and gave a target the version of the change that they had recorded last. Changes with smaller
//! versions may have waited then. So a reader takes nothing from the version of a target, whoever wrote it. A former program that writes
//! the history again leaves the low watermarks as they are, which stay true.

/// The version that promises nothing: nothing was recorded for certain, or the versions have no order.
pub(crate) const NOTHING: &str = "0";

/// The name of the low watermark of a target's watch, in a namespace or in all. `@` is in no name of an object.
pub(crate) fn of_watch(target: &str, namespace: Option<&str>) -> String {
    format!("{target}@{}", namespace.unwrap_or("*"))
}

/// Whether it is the name of a target, and not of a watch.
pub(crate) fn is_target(name: &str) -> bool {
    !name.contains('@')
}
