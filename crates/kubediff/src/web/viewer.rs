//! The person or program that asks.

use std::sync::Arc;

use http::StatusCode;
use kubediff_history::KindName;
use tokio::sync::OwnedSemaphorePermit;

use super::address;
use super::params::Params;
use super::problem::Problem;
use super::rights::Rights;
use super::sessions::User;
use super::store::Seen;

/// The person or program that asks.
#[derive(Clone)]
pub(super) enum Viewer {
    /// It may read the file of the history, and so all of it.
    Owner,
    /// A user of the cluster, who sees what the cluster would show them.
    User { user: Arc<User>, rights: Arc<Rights> },
}

/// The objects that a request is about, as far as that decides about rights.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    /// The one namespace.
    pub(super) namespace: Option<String>,
    /// The one object, by resource, namespace and name.
    pub(super) object: Option<(KindName, Option<String>, String)>,
    /// Nothing in any namespace.
    is_outside: bool,
}

impl Wanted {
    /// The objects of an address.
    pub(super) fn of(segments: &[String], params: &Params) -> Self {
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        if let ["o", resource, namespace, name] | ["v1", "objects", resource, namespace, name, ..] =
            segments.as_slice()
        {
            let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
            let resource = KindName { group: Some(group.to_owned()), resource: plural.to_owned() };
            let namespace = Some((*namespace).to_owned()).filter(|name| name != address::NONE);
            let is_outside = namespace.is_none();
            return Self {
                namespace: namespace.clone(),
                object: Some((resource, namespace, (*name).to_owned())),
                is_outside,
            };
        }
        let namespace = params.get("ns").filter(|name| *name != address::NONE).map(str::to_owned);
        Self { namespace, object: None, is_outside: segments == ["help"] }
    }

    /// Whether objects of this namespace are among them.
    pub(super) fn has(&self, namespace: &str) -> bool {
        !self.is_outside && self.namespace.as_ref().is_none_or(|wanted| wanted == namespace)
    }
}

impl Viewer {
    /// The part of the history that they may see now, of the objects that are wanted.
    pub(super) async fn seen(&self, wanted: &Wanted) -> Result<Seen, Problem> {
        match self {
            Self::Owner => Ok(Seen::default()),
            Self::User { user, rights } => {
                let sight = rights.sight(user, wanted).await?;
                Ok(Seen { sight, user: Some(user.name.clone()) })
            }
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
