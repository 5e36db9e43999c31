//! Waits for writes of clients. It reads the events of the collection, so that nothing is polled and no version is
//! missed.

use std::time::Duration;

use serde_json::Value;
use serve::{Change, Collection as _, Object, Status};

use crate::api::{Api, Gvr};
use crate::object::typed;
use crate::turn::Target;

/// The object did not meet the condition within [`ApiOptions::wait_limit`](crate::ApiOptions::wait_limit), or its
/// resource is not served.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct WaitError(#[from] ErrorKind);

#[derive(Debug, thiserror::Error)]
enum ErrorKind {
    #[error("the server does not know the resource")]
    Unknown(#[from] Status),
    #[error("{object} did not meet the condition within {limit:?}: {seen}")]
    TimedOut { object: String, limit: Duration, seen: Seen },
}

impl WaitError {
    /// Whether the limit was reached; otherwise the resource is not served.
    pub fn is_timeout(&self) -> bool {
        matches!(self.0, ErrorKind::TimedOut { .. })
    }
}

/// The last state that a wait has seen, without the content, which may be that of a Secret.
#[derive(Debug, Default)]
enum Seen {
    #[default]
    Nothing,
    Version(u64),
    Deleted,
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => write!(f, "it does not exist"),
            Self::Version(revision) => write!(f, "it is at resourceVersion {revision}"),
            Self::Deleted => write!(f, "it was deleted"),
        }
    }
}

impl Api {
    /// Waits until an object meets a condition and returns the version that does. The namespace is empty for resources of
    /// the cluster.
    ///
    /// The condition sees the current version and each later one in order, so a state that lasts for a moment is not
    /// missed. Nothing is polled. The wait is bounded by [`ApiOptions::wait_limit`](crate::ApiOptions::wait_limit) and
    /// needs a tokio runtime with time. Cancel safe.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use serde_json::json;
    /// use testapi::{Api, Gvr};
    ///
    /// let api = Api::default();
    /// let maps = Gvr::new("v1", "configmaps");
    /// // A controller, say.
    /// let writer = (api.clone(), maps.clone());
    /// tokio::spawn(async move {
    ///     let (api, maps) = writer;
    ///     api.create(&maps, json!({"metadata": {"namespace": "shop", "name": "copy"}, "data": {"x": "1"}}))
    /// });
    /// let copy = api.wait_for(&maps, "shop", "copy", |map| map["data"]["x"] == "1").await?;
    /// assert_eq!(copy["kind"], "ConfigMap");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The limit is reached, or the resource is not served.
    pub async fn wait_for(
        &self,
        resource: &Gvr,
        namespace: &str,
        name: &str,
        mut condition: impl FnMut(&Value) -> bool,
    ) -> Result<Value, WaitError> {
        let met = |found: Option<Value>| found.filter(&mut condition);
        self.wait(resource, namespace, name, met).await
    }

    /// Waits until there is no object of this name; returns at once if there is none.
    ///
    /// # Errors
    ///
    /// As [`wait_for`](Self::wait_for).
    pub async fn wait_until_gone(
        &self,
        resource: &Gvr,
        namespace: &str,
        name: &str,
    ) -> Result<(), WaitError> {
        let met = |found: Option<Value>| found.is_none().then_some(());
        self.wait(resource, namespace, name, met).await
    }

    async fn wait<T>(
        &self,
        resource: &Gvr,
        namespace: &str,
        name: &str,
        met: impl FnMut(Option<Value>) -> Option<T>,
    ) -> Result<T, WaitError> {
        let limit = self.wait_limit();
        let mut seen = Seen::default();
        let waiting = self.versions(resource, namespace, name, &mut seen, met);
        let met = match tokio::time::timeout(limit, waiting).await {
            Ok(met) => met.map_err(ErrorKind::from),
            Err(_) => {
                let object = format!("{} {namespace}/{name}", resource.plural);
                Err(ErrorKind::TimedOut { object, limit, seen })
            }
        };
        Ok(met?)
    }

    /// Calls `met` with the current version and each later one, until it returns a value.
    async fn versions<T>(
        &self,
        resource: &Gvr,
        namespace: &str,
        name: &str,
        seen: &mut Seen,
        mut met: impl FnMut(Option<Value>) -> Option<T>,
    ) -> Result<T, Status> {
        // The events end when the server is restarted or restored, or when the resource is no longer served.
        loop {
            let target = self.target(resource, namespace, name)?;
            // The subscription comes before the first look, so that no event is lost in between.
            let Ok(mut events) = target.objects.events(target.objects.revision()) else { continue };
            let current = target.current();
            if let Some(met) = met(seen.look(&target, current.as_deref())) {
                return Ok(met);
            }
            let from = current.map_or(0, |object| object.revision);
            while let Ok(batch) = events.next().await {
                let later = |event: &&serve::Event| event.object.revision > from;
                let ours = |event: &&serve::Event| event.object.key() == (&*target.namespace, &*target.name);
                for event in batch.events.iter().filter(ours).filter(later) {
                    let there = (event.change != Change::Deleted).then_some(&*event.object);
                    if let Some(met) = met(seen.look(&target, there)) {
                        return Ok(met);
                    }
                }
            }
        }
    }
}

impl Seen {
    fn look(&mut self, target: &Target, object: Option<&Object>) -> Option<Value> {
        *self = match (object, &self) {
            (Some(object), _) => Self::Version(object.revision),
            (None, Self::Nothing) => Self::Nothing,
            (None, _) => Self::Deleted,
        };
        object.map(|object| typed(&target.resource, object))
    }
}
