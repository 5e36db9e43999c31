//! The fields that a write cannot change: the status in a write of the object, all others in a write of `status`.

use super::set::FieldSet;

/// Fields that a write ignores.
#[derive(Debug, Clone, Default)]
pub struct Ignored {
    pub(super) fields: FieldSet,
}

impl Ignored {
    /// The ignored fields of a resource (group and plural name) in a write of a subresource; empty for the object
    /// itself. `has_status` says whether it has the subresource `status`.
    ///
    /// The table is that of the API server's strategies (`GetResetFields`).
    pub fn of(group: &str, plural: &str, subresource: &str, has_status: bool) -> Self {
        let paths: &[&str] = match (group, plural, subresource) {
            ("certificates.k8s.io", "certificatesigningrequests", "") => &["spec", "status"],
            ("certificates.k8s.io", "certificatesigningrequests", "status") => &["spec", "status.conditions"],
            ("certificates.k8s.io", "certificatesigningrequests", "approval") => {
                &["spec", "status.certificate"]
            }
            // Writes of these kinds replace the whole object.
            ("", "endpoints" | "events", _) => &[],
            ("", "namespaces", "finalize") => &["status"],
            (_, _, "") if has_status => &["status"],
            ("", "pods", "status") => &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
            ("apps", "deployments", "status") => &["spec", "metadata.labels"],
            ("networking.k8s.io", "ingresses", "status") => &["spec"],
            ("" | "apps" | "autoscaling" | "batch" | "policy", _, "status") => &["spec"],
            (_, _, "status") => &["metadata", "spec"],
            _ => &[],
        };
        Self { fields: FieldSet::of(paths) }
    }
}
