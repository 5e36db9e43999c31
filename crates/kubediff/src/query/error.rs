//! Questions without an answer.

use std::io;
use std::path::PathBuf;

use super::instant::InvalidTime;
use super::remote::DaemonError;
use crate::InvalidNoise;
use crate::changes::change::UnknownForm;
use crate::exit::Exit;
use crate::model::path::InvalidPattern;

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
    /// The key of the hashes cannot be used.
    #[error(transparent)]
    Key(crate::KeyFileError),
    /// Hashes by another key could not be compared with those that the history has.
    #[error(
        "the key of the hashes is not beside {}; put it there as `kubediff.key` (the daemon's configuration names it: `keyFile`)", .0.display()
    )]
    NoKey(PathBuf),
    /// The value to mask cannot be read.
    #[error("the value cannot be read from {}", file.display())]
    Value {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The value to mask would be found everywhere.
    #[error("a value of fewer than 8 bytes is in many texts by chance; mask it with --path")]
    ShortValue,
    /// The scrub cannot be done, or left to the daemon.
    #[error(transparent)]
    Order(crate::history::scrub::OrderError),
    /// A newer kubediff has written what is asked for.
    #[error(transparent)]
    Form(#[from] UnknownForm),
    /// The history has no such thing.
    #[error("{0}")]
    Nothing(String),
    /// The recording cannot be read.
    #[error("{0}")]
    Recording(String),
    /// A check found faults.
    #[error("the history has {0} faults; restore a backup, or begin a new history")]
    Unsound(usize),
    /// Neither a file nor a daemon is named.
    #[error(
        "no history is named; give its file with --history FILE or $KUBEDIFF_HISTORY, or ask the daemon in a cluster with \
         --daemon NAMESPACE/NAME"
    )]
    NoSource,
    /// A cluster is named, and nothing in it.
    #[error(
        "a file needs no cluster; name the daemon to ask with --daemon NAMESPACE/NAME, or leave the cluster out"
    )]
    NoDaemon,
    /// The daemon's container does not say where the history is.
    #[error(
        "there is no history {} in the daemon's container; set KUBEDIFF_HISTORY in it to the `history.path` of the daemon's \
         configuration, as the chart does", .0.display()
    )]
    Elsewhere(PathBuf),
    /// The daemon cannot be asked.
    #[error(transparent)]
    Daemon(DaemonError),
    /// The output cannot be written.
    #[error("the output cannot be written")]
    Output(#[from] io::Error),
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

impl QueryError {
    /// How the program ends with this.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Time(_)
            | Self::Name(_)
            | Self::Path(_)
            | Self::Noise(_)
            | Self::Period(_)
            | Self::ShortValue
            | Self::NoSource
            | Self::NoDaemon => Exit::Usage,
            Self::History(_)
            | Self::Key(_)
            | Self::Value { .. }
            | Self::Order(_)
            | Self::NoKey(_)
            | Self::Form(_)
            | Self::Nothing(_)
            | Self::Recording(_)
            | Self::Unsound(_)
            | Self::Elsewhere(_)
            | Self::Output(_) => Exit::Failure,
            Self::Daemon(error) => error.exit(),
        }
    }
}

impl From<DaemonError> for QueryError {
    fn from(error: DaemonError) -> Self {
        error.into_output().map_or_else(Self::Daemon, Self::Output)
    }
}

impl From<serde_json::Error> for QueryError {
    fn from(error: serde_json::Error) -> Self {
        Self::Output(error.into())
    }
}
