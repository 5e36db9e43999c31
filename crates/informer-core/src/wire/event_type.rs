//! The type of a watch event.

/// The type of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// The object was created, or began to match the selection.
    Added,
    /// The object changed.
    Modified,
    /// The object was deleted or deselected; the event has its last state.
    Deleted,
    /// The watch has reached this version.
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

    /// The name that an event has for it.
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
