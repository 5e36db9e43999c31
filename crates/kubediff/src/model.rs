//! Objects, their kinds, paths and differences. None of these modules knows a cluster, a terminal or a secret.

pub(crate) mod diff;
pub(crate) mod document;
pub(crate) mod gap;
pub(crate) mod glob;
pub(crate) mod gvk;
pub(crate) mod lists;
pub(crate) mod managers;
pub(crate) mod patch;
pub(crate) mod path;
pub(crate) mod position;
pub(crate) mod schema;
pub mod targets;
