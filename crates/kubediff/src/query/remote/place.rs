//! Where the daemon runs.

/// A container of a pod, in which the daemon runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) namespace: String,
    pub(super) pod: String,
    pub(super) container: String,
    /// The container's image.
    pub(super) image: String,
}
