//! Why watching could not begin, or had to end.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::streams::NotAdded;
use crate::cluster::NoCluster;
use crate::exit::Exit;
use crate::model::targets::InvalidTarget;
use crate::{InvalidNoise, InvalidPattern, KeyFileError, NoRandomKey};

/// Watching could not begin, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// No cluster.
    #[error(transparent)]
    Cluster(#[from] NoCluster),
    /// The client cannot be made.
    #[error("the cluster cannot be reached with this configuration")]
    Client(#[source] Box<kube_client::Error>),
    /// The informers cannot be made.
    #[error(transparent)]
    Informer(#[from] informer::Error),
    /// The names of the targets are invalid.
    #[error(transparent)]
    Target(#[from] InvalidTarget),
    /// A resource does not exist.
    #[error(transparent)]
    Unknown(Box<informer::DiscoveryError>),
    /// The server does not say which resources it has.
    #[error("{0}")]
    Unreachable(String),
    /// The same, without an end.
    #[error("{address}: the server does not say within {} s which resources it has", .limit.as_secs_f64())]
    Silent {
        /// The server's address.
        address: String,
        /// For how long.
        limit: Duration,
    },
    /// The server refuses the selectors.
    #[error("{0}")]
    Refused(String),
    /// The server forbids all watches.
    #[error("{0}")]
    Denied(String),
    /// It was interrupted before anything could be watched.
    #[error("nothing was watched: {0}")]
    Nothing(String),
    /// The selector is malformed.
    #[error(transparent)]
    Selector(#[from] informer::InvalidSelector),
    /// There is no such noise rule.
    #[error(transparent)]
    Noise(#[from] InvalidNoise),
    /// The path to hide is malformed.
    #[error(transparent)]
    Hide(#[from] InvalidPattern),
    /// Secrets could not be hidden.
    #[error(transparent)]
    Secrets(#[from] NoRandomKey),
    /// The output could not be written.
    #[error("the output cannot be written")]
    Output(#[source] io::Error),
    /// The recording cannot be begun.
    #[error("{}: the recording needs a new file, and it cannot be made", .file.display())]
    Recording {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The cluster cannot be told from others.
    #[error(
        "a history needs to know which cluster it is of, by the uid of the namespace kube-system: {0}; grant `get` on it"
    )]
    NoIdentity(String),
    /// Another cluster answers at the server's address.
    #[error(
        "the cluster at {address} was the one with uid {expected}, and is {found} now; for that one, start again with another history"
    )]
    OtherCluster {
        /// The address.
        address: String,
        /// The uid at the start.
        expected: String,
        /// The uid now.
        found: String,
    },
    /// The history cannot be written.
    #[error(transparent)]
    History(#[from] kubediff_history::Error),
    /// The key of the hashes in a history cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// Signals cannot be listened for.
    #[error("signals cannot be listened for")]
    Signals(#[source] io::Error),
}

impl WatchError {
    /// How the program ends with this.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Cluster(_)
            | Self::Client(_)
            | Self::Unreachable(_)
            | Self::Silent { .. }
            | Self::Denied(_)
            | Self::Nothing(_)
            | Self::NoIdentity(_)
            | Self::OtherCluster { .. }
            | Self::Informer(_) => Exit::Cluster,
            Self::Target(_)
            | Self::Unknown(_)
            | Self::Refused(_)
            | Self::Selector(_)
            | Self::Noise(_)
            | Self::Hide(_) => Exit::Usage,
            Self::Secrets(_)
            | Self::Output(_)
            | Self::Recording { .. }
            | Self::History(_)
            | Self::Key(_)
            | Self::Signals(_) => Exit::Failure,
        }
    }
}

impl From<NotAdded> for WatchError {
    fn from(error: NotAdded) -> Self {
        match error {
            NotAdded::Selector(error) => Self::Selector(error),
            NotAdded::Informer(error) => Self::Informer(error),
        }
    }
}
