//! Why a controller ended.

use std::net::SocketAddr;
use std::{fmt, io};

use informer::NotSynced;
use informer::kube::client;

use crate::election::ElectionError;
use crate::permissions::Rules;

/// A controller could not start, or cannot go on.
///
/// `Debug` has the same words as `Display`, and the causes: a `main` that returns this error prints it by `Debug`.
#[derive(thiserror::Error)]
#[error("{why}")]
pub struct RunError {
    why: Why,
}

impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&informer::error_chain(self))
    }
}

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error("the controller's informers are not synced: {0}")]
    NotSynced(#[source] NotSynced),
    #[error("the controller cannot subscribe to an informer: {0}")]
    Informer(#[source] informer::Error),
    #[error("an informer of the controller has stopped")]
    InformerStopped,
    #[error("the controller cannot become the leader: {0}")]
    Election(#[source] ElectionError),
    #[error("the controller lacks permissions: {}. These rules grant them:\n{}", .0.summary(), .0.to_yaml())]
    Permissions(Rules),
    #[error("the controller has no client for its writes")]
    Client(#[source] client::Error),
    #[error("the program cannot listen at {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("the program cannot listen to signals: {0}")]
    Signals(#[source] io::Error),
}

impl RunError {
    pub(crate) fn not_synced(error: NotSynced) -> Self {
        Self { why: Why::NotSynced(error) }
    }

    pub(crate) fn informer(error: informer::Error) -> Self {
        Self { why: Why::Informer(error) }
    }

    pub(crate) fn informer_stopped() -> Self {
        Self { why: Why::InformerStopped }
    }

    pub(crate) fn election(error: ElectionError) -> Self {
        Self { why: Why::Election(error) }
    }

    pub(crate) fn permissions(missing: Rules) -> Self {
        Self { why: Why::Permissions(missing) }
    }

    pub(crate) fn client(error: client::Error) -> Self {
        Self { why: Why::Client(error) }
    }

    pub(crate) fn listen(address: SocketAddr, source: io::Error) -> Self {
        Self { why: Why::Listen { address, source } }
    }

    pub(crate) fn signals(error: io::Error) -> Self {
        Self { why: Why::Signals(error) }
    }

    /// Why this process can never become the leader, if that is the reason.
    pub fn as_election(&self) -> Option<&ElectionError> {
        match &self.why {
            Why::Election(error) => Some(error),
            _ => None,
        }
    }

    /// The permissions that are missing, as the rules that grant them, if that is the reason.
    pub fn missing_permissions(&self) -> Option<&Rules> {
        match &self.why {
            Why::Permissions(missing) => Some(missing),
            _ => None,
        }
    }

    /// Which informers are not synced and why, if that is the reason.
    pub fn as_not_synced(&self) -> Option<&NotSynced> {
        match &self.why {
            Why::NotSynced(error) => Some(error),
            _ => None,
        }
    }

    /// Whether an informer was stopped.
    pub fn is_stopped(&self) -> bool {
        matches!(&self.why, Why::InformerStopped | Why::Informer(_))
    }
}
