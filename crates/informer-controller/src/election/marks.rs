//! The labels and annotations of a lease.

use std::collections::BTreeMap;

/// Labels and annotations of a lease. Others stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// The values of labels.
    pub labels: BTreeMap<&'static str, String>,
    /// `None`: the lease has no such annotation.
    pub annotations: BTreeMap<&'static str, Option<String>>,
}
