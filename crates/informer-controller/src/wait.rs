//! Waiting until an object is as a program wants it.

use std::fmt;
use std::time::Duration;

use informer::{Informer, Item, NotSynced, Object, ObjectKey, ResourceType, ResourceVersion, View};
use tokio::time::Instant;

/// Waits until an object in an informer's cache fulfils a condition, and returns the object as it was then: `None` if the
/// condition holds for an object that does not exist.
///
/// ```no_run
/// use std::time::Duration;
///
/// use informer::Informer;
/// use informer_controller::wait::wait_until;
/// use k8s_openapi::api::core::v1::Pod;
///
/// # async fn example(pods: Informer<Pod>) -> Result<(), Box<dyn std::error::Error>> {
/// let is_running = |pod: Option<&informer::Item<Pod>>| {
///     pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()) == Some("Running")
/// };
/// wait_until(&pods, &"shop/cart".parse()?, is_running, Duration::from_secs(30)).await?;
/// # Ok(())
/// # }
/// ```
///
/// The condition is called with the state at the start, when the informer is synced, and after each change. States that
/// follow each other quickly are coalesced: it may never see one that does not last. While an object does not decode as a `T`,
/// it is not called.
///
/// The start costs one comparison of keys per object of the cache.
///
/// A reconciler should not wait: it returns, and is called again when the object changes. This is for programs and tests.
///
/// # Errors
///
/// When the condition does not hold within `limit`, or the informer is not started or stops. The error has the last state by
/// its version, never its content.
///
/// # Cancel safety
///
/// Safe.
pub async fn wait_until<T: View>(
    informer: &Informer<T>,
    key: &ObjectKey,
    mut condition: impl FnMut(Option<&Item<T>>) -> bool,
    limit: Duration,
) -> Result<Option<Item<T>>, NotMet> {
    let end = Instant::now() + limit;
    let fail = |why| NotMet {
        resource: (*informer.resource()).clone(),
        key: key.clone(),
        last: last(informer, key),
        why,
    };
    // Of the values that this subscription would decode, nobody needs any.
    let keys = informer.cast::<Object>();
    let wanted = key.clone();
    let changes = keys.subscribe().filter(move |object| *object.key() == wanted).changes();
    let mut changes = changes.map_err(|_| fail(Why::Stopped))?;
    if !informer.is_synced() {
        informer.wait_for_sync(limit).await.map_err(|error| fail(Why::NotSynced(error)))?;
    }
    loop {
        if let Ok(object) = informer.lister().get(key)
            && condition(object.as_ref())
        {
            return Ok(object);
        }
        match tokio::time::timeout_at(end, changes.recv()).await {
            Ok(Some(_)) => {}
            Ok(None) => return Err(fail(Why::Stopped)),
            Err(_) => return Err(fail(Why::Limit(limit))),
        }
    }
}

/// The condition of [`wait_until`] did not hold in time.
#[derive(Debug, Clone)]
pub struct NotMet {
    resource: ResourceType,
    key: ObjectKey,
    last: Last,
    why: Why,
}

#[derive(Debug, Clone)]
enum Why {
    Limit(Duration),
    Stopped,
    NotSynced(NotSynced),
}

/// The object as it was last.
#[derive(Debug, Clone)]
enum Last {
    Missing,
    At(ResourceVersion),
    Undecodable(ResourceVersion),
}

fn last<T: View>(informer: &Informer<T>, key: &ObjectKey) -> Last {
    let Ok(Some(object)) = informer.cast::<Object>().lister().get(key) else { return Last::Missing };
    let version = object.resource_version().clone();
    match informer.lister().get(key) {
        Err(_) => Last::Undecodable(version),
        Ok(_) => Last::At(version),
    }
}

impl NotMet {
    /// Whether the time limit has passed.
    pub fn is_timeout(&self) -> bool {
        matches!(self.why, Why::Limit(_))
    }

    /// Whether the informer has stopped.
    pub fn is_stopped(&self) -> bool {
        matches!(self.why, Why::Stopped)
    }

    /// Why the informer was not synced, if that is the reason.
    pub fn as_not_synced(&self) -> Option<&NotSynced> {
        match &self.why {
            Why::NotSynced(error) => Some(error),
            _ => None,
        }
    }

    /// The version of the object as it was last; `None` if it did not exist.
    pub fn last_version(&self) -> Option<&ResourceVersion> {
        match &self.last {
            Last::Missing => None,
            Last::At(version) | Last::Undecodable(version) => Some(version),
        }
    }
}

impl std::error::Error for NotMet {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.as_not_synced().map(|error| error as _)
    }
}

impl fmt::Display for NotMet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, key, last, why } = self;
        write!(f, "{resource} {key} does not meet the condition")?;
        match why {
            Why::Limit(limit) => write!(f, " within {} s", limit.as_secs_f64())?,
            Why::Stopped => write!(f, ", and its informer has stopped")?,
            Why::NotSynced(_) => return write!(f, ", because its informer is not synced"),
        }
        match last {
            Last::Missing => write!(f, ": it does not exist"),
            Last::At(version) => write!(f, ": it is at resourceVersion {version}"),
            Last::Undecodable(version) => write!(f, ": it does not decode at resourceVersion {version}"),
        }
    }
}
