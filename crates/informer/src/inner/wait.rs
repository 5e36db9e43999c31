//! Waiting until the cache reaches a goal: a version, a deletion, the sync of a namespace.

use std::fmt;
use std::time::Duration;

use informer_core::reflector::Status;
use informer_core::{ObjectKey, ResourceVersion, Uid};

use crate::inner::Core;
use crate::options::resource::ResourceType;
use crate::options::selection::Selection;

/// A cache did not reach what the caller waited for.
///
/// ```
/// # async fn example(pods: informer::Informer<informer::Object>, version: informer::ResourceVersion) {
/// use std::time::Duration;
///
/// match pods.at_least(&version, Duration::from_secs(10)).await {
///     Ok(()) => println!("the cache has it"),
///     Err(error) if error.is_stopped() => println!("nothing comes any more"),
///     // pods.v1 (all namespaces) has not reached resourceVersion 7 within 10 s: the cache is at resourceVersion 5,
///     // retrying in 3.2 s ...
///     Err(error) => println!("{error}"),
/// }
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct NotReached {
    resource: ResourceType,
    selection: Selection,
    goal: Goal,
    why: Why,
    status: Status,
    /// The version that the whole cache reflects.
    reached: ResourceVersion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Limit(Duration),
    Stopped,
    NotSelected,
}

/// The goal that a caller waits for.
#[derive(Debug, Clone)]
pub(crate) enum Goal {
    /// The whole cache reflects a version.
    Version(ResourceVersion),
    /// The cached objects of a namespace reflect a version.
    VersionIn(String, ResourceVersion),
    /// A namespace is synced.
    Namespace(String),
    /// An incarnation of an object is not in the cache.
    Gone(ObjectKey, Uid),
}

/// Whether the cache has reached a goal.
enum Standing {
    Reached,
    /// Not yet. If the goal concerns one scope, this has the status of that scope.
    Ahead(Option<Status>),
    /// The informer does not select the namespace of the goal.
    NotSelected,
}

impl NotReached {
    /// Whether the time limit has passed.
    pub fn is_timeout(&self) -> bool {
        matches!(self.why, Why::Limit(_))
    }

    /// Whether the informer has stopped, so that it never reaches the goal.
    pub fn is_stopped(&self) -> bool {
        self.why == Why::Stopped
    }

    /// Whether the informer does not select the namespace, or no longer does.
    pub fn is_not_selected(&self) -> bool {
        self.why == Why::NotSelected
    }

    /// The status of the informer, or of the namespace that was waited for: the reason for the failure.
    pub fn status(&self) -> &Status {
        &self.status
    }
}

impl std::error::Error for NotReached {}

impl fmt::Display for NotReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, selection, goal, why, status, reached } = self;
        write!(f, "{resource} ({selection}) has not reached {goal}")?;
        match why {
            Why::Limit(limit) if reached.is_unset() => {
                write!(f, " within {} s: {status}", limit.as_secs_f64())
            }
            Why::Limit(limit) => {
                let limit = limit.as_secs_f64();
                write!(f, " within {limit} s: the cache is at resourceVersion {reached}, {status}")
            }
            Why::Stopped => write!(f, ": the informer has stopped"),
            Why::NotSelected => write!(f, ": the informer does not select that namespace"),
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "resourceVersion {version}"),
            Self::VersionIn(namespace, version) => {
                write!(f, "resourceVersion {version} in namespace {namespace}")
            }
            Self::Namespace(namespace) => write!(f, "the sync of namespace {namespace}"),
            Self::Gone(key, uid) => write!(f, "the deletion of {key} with uid {uid}"),
        }
    }
}

impl Goal {
    async fn standing(&self, core: &Core) -> Standing {
        let reach = match self {
            Self::Version(version) => {
                return Standing::ahead_unless(reaches(&core.cache.resource_version(), version));
            }
            Self::VersionIn(namespace, _) | Self::Namespace(namespace) => core.reach(Some(namespace)).await,
            Self::Gone(key, _) => core.reach(key.namespace()).await,
        };
        let Some(reach) = reach else { return Standing::NotSelected };
        let is_reached = reach.is_synced
            && match self {
                Self::Version(version) | Self::VersionIn(_, version) => {
                    reaches(&reach.resource_version, version)
                }
                Self::Namespace(_) => true,
                Self::Gone(key, uid) => {
                    !core.cache.with(key.as_str(), |object| object.uid() == uid).unwrap_or(false)
                }
            };
        if is_reached { Standing::Reached } else { Standing::Ahead(Some(reach.status)) }
    }
}

impl Standing {
    fn ahead_unless(is_reached: bool) -> Self {
        if is_reached { Self::Reached } else { Self::Ahead(None) }
    }
}

/// An unset version is reached with the initial list.
fn reaches(current: &ResourceVersion, version: &ResourceVersion) -> bool {
    current.is_at_least(version) || (version.is_unset_or_zero() && !current.is_unset())
}

/// At the limit, `wait_for` looks once more, which also tells the status of the scope. The driver cannot answer while user
/// code does not return, so this bounds the wait for the answer.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// Waits until the cache has reached `goal`.
///
/// # Cancel safety
///
/// Safe.
pub(crate) async fn wait_for(core: &Core, goal: Goal, limit: Duration) -> Result<(), NotReached> {
    let ended = async {
        loop {
            let change = core.progress.next_change();
            match goal.standing(core).await {
                Standing::Reached => return Ok(()),
                Standing::NotSelected => return Err(Why::NotSelected),
                Standing::Ahead(_) => {}
            }
            tokio::select! {
                biased;
                () = core.life.stopping() => return Err(Why::Stopped),
                () = change => {}
            }
        }
    };
    let mut status = None;
    let ended = match tokio::time::timeout(limit, ended).await {
        Ok(ended) => ended,
        Err(_) => match tokio::time::timeout(LAST_LOOK, goal.standing(core)).await {
            Ok(Standing::Reached) => Ok(()),
            Ok(Standing::NotSelected) => Err(Why::NotSelected),
            Ok(Standing::Ahead(of_scope)) => {
                status = of_scope;
                Err(Why::Limit(limit))
            }
            Err(_) => Err(Why::Limit(limit)),
        },
    };
    ended.map_err(|why| NotReached {
        resource: core.resource.clone(),
        selection: core.selection.clone(),
        status: status.unwrap_or_else(|| core.progress.status().borrow().clone()),
        reached: core.cache.resource_version(),
        goal,
        why,
    })
}
