//! How much of each object a response holds.

/// How much of an object is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Representation {
    /// The whole object.
    #[default]
    Whole,
    /// Its metadata; the version of `meta.k8s.io`, for an object or for a list.
    Metadata { version: &'static str, list: bool },
    /// A row of a table.
    Table { version: &'static str, include: Include },
}

/// The object that a row of a table holds besides its cells (`includeObject`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    Metadata,
    Object,
}
