//! What a watch event says has happened.

/// The type of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// It came into being, or into what is watched.
    Added,
    /// It changed.
    Modified,
    /// It was deleted, or left what is watched; the object is its last state.
    Deleted,
    /// Nothing changed up to this version.
    Bookmark,
    /// The watch failed; the object is a Status.
    Error,
}

impl EventType {
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"ADDED" => Self::Added,
            b"MODIFIED" => Self::Modified,
            b"DELETED" => Self::Deleted,
            b"BOOKMARK" => Self::Bookmark,
            b"ERROR" => Self::Error,
            _ => return None,
        })
    }

    /// As it stands in an event.
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }

    pub(super) fn is_new_state(self) -> bool {
        matches!(self, Self::Added | Self::Modified)
    }
}
