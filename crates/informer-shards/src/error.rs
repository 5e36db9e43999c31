//! Errors of shards.

use informer_controller::RunError;
use informer_controller::election::ElectionError;

use crate::BoxError;

/// A member cannot join, or cannot go on. A failure that may pass (no connection, an overloaded server) is retried instead,
/// and shown by [`ShardsStatus::problem`](super::ShardsStatus::problem).
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ShardsError(Kind);

#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error("invalid shards: {0}")]
    Invalid(String),
    #[error("the member cannot have its lease: {0}")]
    Lease(#[source] ElectionError),
    #[error("the leases of the members cannot be listed: {0}")]
    Look(#[source] ElectionError),
    #[error("the member has no client for its writes")]
    Client(#[source] informer::kube::client::Error),
    #[error("the controller of a share could not be made")]
    Make(#[source] BoxError),
    #[error("the controller of a share has ended: {0}")]
    Controller(#[source] RunError),
    #[error("the controller of a share panicked")]
    Panicked,
}

impl ShardsError {
    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self(Kind::Invalid(reason.into()))
    }

    pub(crate) fn look(error: ElectionError) -> Self {
        Self(Kind::Look(error))
    }

    pub(crate) fn client(error: informer::kube::client::Error) -> Self {
        Self(Kind::Client(error))
    }

    pub(crate) fn make(error: BoxError) -> Self {
        Self(Kind::Make(error))
    }

    pub(crate) fn controller(error: RunError) -> Self {
        Self(Kind::Controller(error))
    }

    pub(crate) fn panicked() -> Self {
        Self(Kind::Panicked)
    }

    /// The error of the leases, if that is the reason.
    pub fn as_election(&self) -> Option<&ElectionError> {
        match &self.0 {
            Kind::Lease(error) | Kind::Look(error) => Some(error),
            _ => None,
        }
    }

    /// Why the controller of a share has ended, if that is the reason.
    pub fn as_run(&self) -> Option<&RunError> {
        match &self.0 {
            Kind::Controller(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ElectionError> for ShardsError {
    fn from(error: ElectionError) -> Self {
        Self(Kind::Lease(error))
    }
}
