//! The part of a history that somebody may see.

use jiff::Timestamp;

use crate::filter::KindName;

/// The objects that somebody may see. A reader that is limited to them ([`Reader::limit`](crate::Reader::limit)) knows of no other ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Sight {
    /// The rights; none sees nothing.
    pub rights: Vec<Right>,
}

/// The right to see some objects.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Right {
    /// Their resource, by its plural. Without a group it is one of the core group.
    pub resource: KindName,
    /// Their namespace. `None`: all namespaces of all times, and no namespace.
    pub namespace: Option<String>,
    /// When the server made that namespace. Objects that are older were in a former one of that name, and somebody else's. `None`: objects
    /// of all times.
    pub since: Option<Timestamp>,
    /// The one object with this name, instead of all.
    pub name: Option<String>,
}
