//! Questions that a history does not answer.

use super::instant::InvalidTime;
use crate::InvalidNoise;
use crate::changes::change::UnknownForm;
use crate::model::path::InvalidPattern;

/// A question that a history does not answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
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
    /// The place to go on is that of another question, or no place.
    #[error("the cursor is not one of this question; ask without it")]
    Cursor,
}

/// A misunderstood name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownName {
    /// No such kind is known.
    #[error("there is no resource `{kind}`: it is not built in, and the history has {seen}")]
    Kind {
        /// The text.
        kind: String,
        /// The resources that the history has.
        seen: String,
    },
    /// The text cannot be read.
    #[error("`{0}` is neither a kind nor an object; write KIND or KIND/NAME, such as deploy or deploy/cart")]
    Malformed(String),
    /// A name is missing.
    #[error("`{0}` is not one object; write KIND/NAME, such as deploy/cart")]
    NoName(String),
    /// Several objects have this name.
    #[error("{object} exists several times: as {places}; name one, with its group or with -n")]
    Ambiguous {
        /// The object.
        object: String,
        /// Which there are.
        places: String,
    },
    /// A version is malformed.
    #[error(
        "`{0}` is no version; write KIND/NAME@#812 with a number that `kubediff log` shows, KIND/NAME@55213 with a \
         resourceVersion, or KIND/NAME@TIME, such as deploy/cart@-2h"
    )]
    Revision(String),
}

impl AskError {
    /// Whether the question is wrong, and not the history.
    pub(crate) fn is_of_the_question(&self) -> bool {
        matches!(
            self,
            Self::Time(_) | Self::Name(_) | Self::Path(_) | Self::Noise(_) | Self::Period(_) | Self::Cursor
        )
    }
}
