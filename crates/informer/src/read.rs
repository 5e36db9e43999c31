//! Handles that read a cache, with types.

pub(crate) mod generated;
pub(crate) mod handle;
pub(crate) mod index;
pub(crate) mod item;
pub(crate) mod lister;
pub(crate) mod object_ref;
pub(crate) mod snapshot;
