//! The person or program that asks.

use std::sync::Arc;

use http::StatusCode;
use tokio::sync::OwnedSemaphorePermit;

use super::problem::Problem;
use super::rights::Rights;
use super::sessions::{Pass, Sessions, User};
use super::store::Seen;
use super::wanted::Wanted;

/// The person or program that asks.
#[derive(Clone)]
pub(super) enum Viewer {
    /// It may read the file of the history, and so all of it.
    Owner,
    /// A user of the cluster, who sees what the cluster would show them.
    User { user: Arc<User>, rights: Arc<Rights>, sessions: Arc<Sessions>, pass: Pass },
}

impl Viewer {
    /// The part of the history that they may see now, of the objects that are wanted.
    pub(super) async fn seen(&self, wanted: &Wanted) -> Result<Seen, Problem> {
        match self {
            Self::Owner => Ok(Seen::default()),
            Self::User { user, rights, .. } => {
                let sight = rights.sight(user, wanted).await?;
                Ok(Seen { sight, user: Some(user.name.clone()) })
            }
        }
    }

    /// The name of the user, if it is one of the cluster.
    pub(super) fn name(&self) -> Option<Arc<str>> {
        match self {
            Self::Owner => None,
            Self::User { user, .. } => Some(user.name.clone()),
        }
    }

    /// Whether they may still be in.
    pub(super) async fn is_in(&self) -> Result<bool, Problem> {
        match self {
            Self::Owner => Ok(true),
            Self::User { sessions, pass, .. } => sessions.is_in(pass).await,
        }
    }

    /// The room for one more stream.
    pub(super) fn room_for_stream(&self) -> Result<Option<OwnedSemaphorePermit>, Problem> {
        let Self::User { user, .. } = self else { return Ok(None) };
        user.streams.clone().try_acquire_owned().map(Some).map_err(|_| {
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "You have too many live pages")
                .hint("Close some of them.")
        })
    }
}
