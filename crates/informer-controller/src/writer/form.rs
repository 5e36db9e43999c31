//! The forms of a write.

use http::Method;

/// The closed list of the forms of a write's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A new object, at the path of its collection or of its parent.
    New,
    Whole,
    Apply,
    Merge,
    Strategic,
    /// The operations of a JSON patch.
    Operations,
    /// The options of a deletion.
    Deletion,
}

impl Form {
    pub(super) fn method(self) -> Method {
        match self {
            Self::New => Method::POST,
            Self::Whole => Method::PUT,
            Self::Apply | Self::Merge | Self::Strategic | Self::Operations => Method::PATCH,
            Self::Deletion => Method::DELETE,
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::New | Self::Whole | Self::Deletion => "application/json",
            Self::Apply => "application/apply-patch+yaml",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Operations => "application/json-patch+json",
        }
    }
}
