//! What changed in the cluster.
