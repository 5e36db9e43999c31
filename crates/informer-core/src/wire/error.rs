//! Why a response could not be taken apart.

use super::ApiStatus;
use crate::ObjectKey;

/// A response that cannot be taken apart any further. Never holds any of an object's content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct WireError(#[from] WireErrorKind);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum WireErrorKind {
    #[error("the answer is not what it should be: {what} (byte {at})")]
    Malformed { what: &'static str, at: u64 },
    #[error("the answer ends early (byte {at})")]
    Truncated { at: u64 },
    #[error("one item of the answer is longer than {limit} bytes (byte {at})")]
    TooLong { limit: usize, at: u64 },
    #[error("it is longer than {limit} bytes")]
    Skipped { key: ObjectKey, limit: usize },
    #[error("one item of the answer is nested too deep (byte {at})")]
    TooDeep { at: u64 },
    #[error("the server answered with a Table, made for printing, where a list of objects was asked for")]
    Table,
    #[error("the server answered with a single object of another kind where a list was asked for")]
    NotAList,
    #[error("the server answered with a Status where a list was asked for: {0}")]
    Status(Box<ApiStatus>),
}

impl WireError {
    /// Whether it is not well-formed JSON of the expected shape.
    pub fn is_malformed(&self) -> bool {
        matches!(self.0, WireErrorKind::Malformed { .. })
    }

    /// Whether it ended before it was complete, as it does when a connection breaks.
    pub fn is_truncated(&self) -> bool {
        matches!(self.0, WireErrorKind::Truncated { .. })
    }

    /// Whether one item of it is longer than allowed.
    pub fn is_too_long(&self) -> bool {
        matches!(self.0, WireErrorKind::TooLong { .. } | WireErrorKind::Skipped { .. })
    }

    /// The item that is left out, where that is all that is wrong ([`ListDecoder::skipping_long_items`]): the decoder's
    /// next call goes on behind it.
    ///
    /// [`ListDecoder::skipping_long_items`]: super::ListDecoder::skipping_long_items
    pub fn skipped(&self) -> Option<&ObjectKey> {
        match &self.0 {
            WireErrorKind::Skipped { key, .. } => Some(key),
            _ => None,
        }
    }

    /// Whether one item of it is nested deeper than allowed.
    pub fn is_too_deep(&self) -> bool {
        matches!(self.0, WireErrorKind::TooDeep { .. })
    }

    /// Whether it is a Table: rows for people to read, not objects.
    pub fn is_table(&self) -> bool {
        matches!(self.0, WireErrorKind::Table)
    }

    /// Whether it is an object of some other kind than a list.
    pub fn is_not_a_list(&self) -> bool {
        matches!(self.0, WireErrorKind::NotAList | WireErrorKind::Table | WireErrorKind::Status(_))
    }

    /// The server's status, if it answered with one.
    pub fn status(&self) -> Option<&ApiStatus> {
        match &self.0 {
            WireErrorKind::Status(status) => Some(status),
            _ => None,
        }
    }
}
