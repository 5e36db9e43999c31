//! Questions without an answer.

use std::io;
use std::path::PathBuf;

use super::remote::DaemonError;
use crate::ask::AskError;
use crate::exit::Exit;

/// A question without an answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The history does not answer it.
    #[error(transparent)]
    Ask(#[from] AskError),
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
    /// The command works on a file.
    #[error("this command is for a history in a file; a database is masked by its daemon")]
    OfFiles,
    /// The command works on a database.
    #[error("a file has no days; copy it with `kubediff history backup`")]
    OfDatabases,
    /// The folder of new files is not there.
    #[error("there is no folder {}; make it, or mount it", .0.display())]
    NoFolder(PathBuf),
    /// The file of a day is that of another cluster.
    #[error("{} has a day of another cluster; copy the days of this one into another folder, or name it otherwise", .0.display())]
    OtherFile(PathBuf),
    /// A cluster is named, and nothing in it.
    #[error(
        "a file needs no cluster; name the daemon to ask with --daemon NAMESPACE/NAME, or leave the cluster out"
    )]
    NoDaemon,
    /// All clusters of a file are asked for.
    #[error(
        "a file has the history of one cluster; leave out --all-clusters and --to-cluster, or name a database with --history postgres://USER@HOST/DATABASE"
    )]
    OneFile,
    /// Several clusters are named, for a question about one.
    #[error(
        "this command is of one cluster; choose it with --cluster NAME (`kubediff clusters` shows their names)"
    )]
    OneCluster,
    /// The names of clusters cannot be read.
    #[error("`{0}` names a cluster twice, or none; write --cluster NAME or --cluster NAME,NAME")]
    Clusters(String),
    /// Two clusters are to be compared, and one is missing.
    #[error(
        "--to-cluster compares with another cluster; name that one with --cluster, such as --cluster prod --to-cluster staging"
    )]
    OtherCluster,
    /// Objects of several clusters are asked for in a form that does not say whose they are.
    #[error(
        "objects do not say of which cluster they are; ask one with --cluster NAME, or leave out `-o {0}`"
    )]
    Unmarked(&'static str),
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

impl QueryError {
    /// How the program ends with this.
    pub fn exit(&self) -> Exit {
        match self {
            Self::ShortValue
            | Self::NoSource
            | Self::NoDaemon
            | Self::OfFiles
            | Self::OfDatabases
            | Self::OneFile
            | Self::OneCluster
            | Self::Clusters(_)
            | Self::OtherCluster
            | Self::Unmarked(_) => Exit::Usage,
            Self::Ask(error) if error.is_of_the_question() => Exit::Usage,
            Self::Ask(_)
            | Self::Key(_)
            | Self::Value { .. }
            | Self::Order(_)
            | Self::NoKey(_)
            | Self::NoFolder(_)
            | Self::Recording(_)
            | Self::Unsound(_)
            | Self::OtherFile(_)
            | Self::Elsewhere(_)
            | Self::Output(_) => Exit::Failure,
            Self::Daemon(error) => error.exit(),
        }
    }
}

/// Converts errors of lower layers into `QueryError::Ask`.
macro_rules! asked {
    ($($error:ty),*) => {
        $(impl From<$error> for QueryError {
            fn from(error: $error) -> Self {
                Self::Ask(error.into())
            }
        })*
    };
}

asked!(
    kubediff_history::Error,
    crate::ask::InvalidTime,
    crate::ask::UnknownName,
    crate::InvalidNoise,
    crate::InvalidPattern,
    crate::changes::change::UnknownForm
);

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
