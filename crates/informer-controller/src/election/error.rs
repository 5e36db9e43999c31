//! Errors of elections.

use std::sync::Arc;

use informer::ApiStatus;
use informer::transport::TransportError;

/// Why a candidate cannot take part in an election. Waiting does not help, so [`Election::acquire`] returns it; a failure
/// that may pass is retried instead, and shown by [`Election::status`].
///
/// [`Election::acquire`]: super::Election::acquire
/// [`Election::status`]: super::Election::status
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct ElectionError(Arc<Kind>);

#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error("invalid election: {0}")]
    Invalid(String),
    #[error("the server cannot be reached with this configuration")]
    Transport(#[from] TransportError),
    #[error("access to the lease {lease} is forbidden ({}); the verbs get, create and update on leases.coordination.k8s.io are needed", status.message)]
    Forbidden { lease: String, status: ApiStatus },
    #[error("the server does not serve leases.coordination.k8s.io in version v1 ({})", .0.message)]
    NotServed(ApiStatus),
    #[error("the namespace of the lease {lease} does not exist ({})", status.message)]
    NoNamespace { lease: String, status: ApiStatus },
    #[error("the lease {lease} is refused ({}: {})", status.code, status.message)]
    Refused { lease: String, status: ApiStatus },
    #[error("the lease {lease} is malformed (at line {line}, column {column}): correct or delete it")]
    Malformed { lease: String, line: usize, column: usize },
    #[error(
        "the controllers of another run in this process have the election of the lease {0}: give them all to one `Program`"
    )]
    Busy(String),
    #[error("the runtime of the election has been shut down")]
    ShutDown,
}

impl ElectionError {
    /// Whether a permission for the lease is missing.
    pub fn is_forbidden(&self) -> bool {
        matches!(*self.0, Kind::Forbidden { .. })
    }

    /// Whether the server does not have the API of leases.
    pub fn is_not_served(&self) -> bool {
        matches!(*self.0, Kind::NotServed(_))
    }

    /// Whether the namespace of the lease does not exist.
    pub fn is_no_namespace(&self) -> bool {
        matches!(*self.0, Kind::NoNamespace { .. })
    }

    /// Whether the lease that the server has does not decode as a lease.
    pub fn is_malformed(&self) -> bool {
        matches!(*self.0, Kind::Malformed { .. })
    }

    /// Whether other controllers of this process have the election.
    pub fn is_busy(&self) -> bool {
        matches!(*self.0, Kind::Busy(_))
    }

    /// The server's refusal, if there is one.
    pub fn api_status(&self) -> Option<&ApiStatus> {
        match &*self.0 {
            Kind::Forbidden { status, .. }
            | Kind::NoNamespace { status, .. }
            | Kind::Refused { status, .. } => Some(status),
            Kind::NotServed(status) => Some(status),
            _ => None,
        }
    }

    pub(super) fn invalid(reason: impl Into<String>) -> Self {
        Kind::Invalid(reason.into()).into()
    }

    pub(super) fn busy(lease: String) -> Self {
        Kind::Busy(lease).into()
    }

    pub(super) fn shut_down() -> Self {
        Kind::ShutDown.into()
    }

    /// Names the place, because the decoder's own message may quote the object.
    pub(crate) fn malformed(lease: &str, error: &serde_json::Error) -> Self {
        Kind::Malformed { lease: lease.to_owned(), line: error.line(), column: error.column() }.into()
    }

    /// The request for this lease was refused for good.
    pub(crate) fn refused(lease: &str, status: ApiStatus) -> Self {
        let lease = lease.to_owned();
        match status.code {
            403 => Kind::Forbidden { lease, status },
            _ => Kind::Refused { lease, status },
        }
        .into()
    }

    /// The lease could not be created because something above it is not there.
    pub(super) fn not_found(lease: &str, status: ApiStatus) -> Self {
        // The server says `namespaces "shop" not found`, or that it cannot find the resource, which has no name.
        if status.message.starts_with("namespaces ") {
            Kind::NoNamespace { lease: lease.to_owned(), status }.into()
        } else {
            Kind::NotServed(status).into()
        }
    }
}

impl From<Kind> for ElectionError {
    fn from(kind: Kind) -> Self {
        Self(Arc::new(kind))
    }
}

impl From<TransportError> for ElectionError {
    fn from(error: TransportError) -> Self {
        Kind::Transport(error).into()
    }
}
