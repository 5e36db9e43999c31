//! The labels and annotations of a lease.

use std::collections::BTreeMap;

/// Labels and annotations of a lease. What is not named here stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) labels: BTreeMap<&'static str, String>,
    /// `None`: the lease has no such annotation.
    pub(crate) annotations: BTreeMap<&'static str, Option<String>>,
}
