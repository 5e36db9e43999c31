//! Why a response could not be cut into its items.

use super::ApiStatus;
use crate::ObjectKey;

/// A response of which no further item can be read. Never holds any of an object's content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct WireError(#[from] WireErrorKind);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum WireErrorKind {
    #[error("the response is malformed: {what} (byte {at})")]
    Malformed { what: &'static str, at: u64 },
    #[error("the response ends early (byte {at})")]
    Truncated { at: u64 },
    #[error("one item of the response is longer than {limit} bytes (byte {at})")]
    TooLong { limit: usize, at: u64 },
    #[error("it is longer than {limit} bytes")]
    Skipped { key: ObjectKey, limit: usize },
    #[error("one item of the response is nested too deep (byte {at})")]
    TooDeep { at: u64 },
    #[error("the server answered with a Table, made for printing, where a list of objects was asked for")]
    Table,
    #[error("the server answered with a single object of another kind where a list was asked for")]
    NotAList,
    #[error("the server answered with a Status where a list was asked for: {0}")]
    Status(Box<ApiStatus>),
}

impl WireError {
    /// Whether the response is not well-formed, or does not have the expected shape.
    pub fn is_malformed(&self) -> bool {
        matches!(self.0, WireErrorKind::Malformed { .. })
    }

    /// Whether the response ended early, as it does when a connection breaks.
    pub fn is_truncated(&self) -> bool {
        matches!(self.0, WireErrorKind::Truncated { .. })
    }

    /// Whether one item of the response is longer than allowed.
    pub fn is_too_long(&self) -> bool {
        matches!(self.0, WireErrorKind::TooLong { .. } | WireErrorKind::Skipped { .. })
    }

    /// The item that was skipped, if that is the only error. The next call of the decoder then continues after it.
    pub fn skipped(&self) -> Option<&ObjectKey> {
        match &self.0 {
            WireErrorKind::Skipped { key, .. } => Some(key),
            _ => None,
        }
    }

    /// Whether one item of the response is nested deeper than allowed.
    pub fn is_too_deep(&self) -> bool {
        matches!(self.0, WireErrorKind::TooDeep { .. })
    }

    /// Whether the response is a Table, which has rows for display instead of objects.
    pub fn is_table(&self) -> bool {
        matches!(self.0, WireErrorKind::Table)
    }

    /// Whether the response is an object of another kind than a list.
    pub fn is_not_a_list(&self) -> bool {
        matches!(self.0, WireErrorKind::NotAList | WireErrorKind::Table | WireErrorKind::Status(_))
    }

    /// The server's status, if the response is one.
    pub fn status(&self) -> Option<&ApiStatus> {
        match &self.0 {
            WireErrorKind::Status(status) => Some(status),
            _ => None,
        }
    }
}
