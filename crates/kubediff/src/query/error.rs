//! Questions without an answer.

use std::io;

use kubediff_history::Reader;

use super::instant::InvalidTime;
use super::names::UnknownName;
use super::period;
use crate::InvalidNoise;
use crate::exit::Exit;
use crate::path::InvalidPattern;
use crate::recorded::UnknownForm;

/// A question without an answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The history cannot be read.
    #[error(transparent)]
    History(#[from] kubediff_history::Error),
    /// A time is malformed.
    #[error(transparent)]
    Time(#[from] InvalidTime),
    /// A kind, name or version is malformed.
    #[error(transparent)]
    Name(#[from] UnknownName),
    /// A path is malformed.
    #[error(transparent)]
    Path(#[from] InvalidPattern),
    /// There is no such noise rule.
    #[error(transparent)]
    Noise(#[from] InvalidNoise),
    /// The times contradict each other.
    #[error("{0}")]
    Period(String),
    /// A newer kubediff has written what is asked for.
    #[error(transparent)]
    Form(#[from] UnknownForm),
    /// The history has no such thing.
    #[error("{0}")]
    Nothing(String),
    /// A check found faults.
    #[error("the history has {0} faults; restore a backup, or begin a new history")]
    Unsound(usize),
    /// The output cannot be written.
    #[error("the output cannot be written")]
    Output(#[from] io::Error),
}

impl QueryError {
    /// Says what is missing, and what time the history covers.
    pub(super) fn nothing(reader: &mut Reader, what: String) -> Self {
        match period::covered(reader) {
            Ok(covered) => Self::Nothing(format!("{what}; {covered}")),
            Err(error) => error,
        }
    }

    /// How the program ends with this.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Time(_) | Self::Name(_) | Self::Path(_) | Self::Noise(_) | Self::Period(_) => Exit::Usage,
            Self::History(_) | Self::Form(_) | Self::Nothing(_) | Self::Unsound(_) | Self::Output(_) => {
                Exit::Failure
            }
        }
    }
}

impl From<serde_json::Error> for QueryError {
    fn from(error: serde_json::Error) -> Self {
        Self::Output(error.into())
    }
}
