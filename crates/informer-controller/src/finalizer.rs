//! Finalizers: an object stays until what it has outside of the cluster is cleaned up.
//!
//! ```no_run
//! use informer_controller::finalizer::{Finalizer, Guarded};
//! use informer_controller::{Context, Failure, Outcome};
//! use k8s_openapi::api::core::v1::ConfigMap;
//! # async fn make_bucket(_: &ConfigMap) -> Result<(), std::io::Error> { Ok(()) }
//! # async fn remove_bucket(_: &ConfigMap) -> Result<(), std::io::Error> { Ok(()) }
//!
//! const BUCKET: Finalizer = Finalizer::new("shop.example.com/bucket");
//!
//! async fn reconcile(context: Context<ConfigMap>) -> Result<Outcome, Failure> {
//!     let Some(map) = context.object() else { return Ok(Outcome::Done) };
//!     match BUCKET.guard(context.writer(), map).await? {
//!         Guarded::Held => make_bucket(map).await?,
//!         Guarded::Cleanup(cleanup) => {
//!             remove_bucket(map).await?;
//!             cleanup.done().await?;
//!         }
//!         Guarded::Released => {}
//!     }
//!     Ok(Outcome::Done)
//! }
//! ```
//!
//! Objects of the cluster need none: owner references have them deleted.
//!
//! The consequences when somebody else removes the finalizer:
//!
//! - From an object that stays: the next reconciliation adds it again.
//! - From an object that is being deleted: the cleanup is skipped ([`Guarded::Released`]). The server lets nobody add
//!   finalizers then.
//! - If the object is gone by the next reconciliation, nothing is called: its effects outside stay behind. Only a look at the
//!   outside, for example at the start of the program, finds them.
//!
//! # What it costs
//!
//! A cache may be old: after a restart, or in a new leader. A former process may have cleaned up since, and an effect that is
//! begun again stays behind. So the server itself confirms each finalizer once per object and term of leadership (or process,
//! without an election): by the write that adds it, else by a read of the object's metadata.
//!
//! These reads are at most 50 a second after the first 100. Of 10,000 objects that have the finalizer when a process starts to
//! lead, the last one is confirmed after 198 s; objects that change go first. They are lists by name, which need no permission
//! that the informer does not need. A confirmation takes about 60 bytes until the cleanup.
//!
//! Without an election, two processes at a time are not protected from each other.
//!
//! # Preconditions
//!
//! Both writes keep the finalizers of others, also those that were added or removed since the cache saw the object.
//!
//! - Adding is a merge patch, which replaces the list as a whole: it carries the resourceVersion that the list was read at. It
//!   is usually the first write of a reconciliation, so the version is known.
//! - Removing is a JSON patch of one entry: it tests the uid, and that the entry is ours. It carries no resourceVersion, because
//!   a cleanup may write the object's status, and others may do so meanwhile: that would be a conflict each time.
//!
//! A conflict ([`WriteError::is_conflict`]) repeats the reconciliation, as every error does. So a cleanup may run twice.

use std::fmt;

use informer::kube::Resource;
use informer::{DecodeError, Item};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::json;

use crate::owned::Owned;
use crate::writer::{Patch, WriteError, Writer};

/// A finalizer: a name of the form `domain/word`, in `metadata.finalizers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finalizer {
    name: &'static str,
}

/// The next step for an object that has a finalizer.
#[must_use]
pub enum Guarded<'a, K> {
    /// The finalizer holds the object, as the server itself has said in this term: effects outside may begin.
    Held,
    /// The object is being deleted, and waits: clean up, then call [`Cleanup::done`].
    Cleanup(Cleanup<'a, K>),
    /// The object is being deleted, and the finalizer does not hold it (any more), or it is gone and the cache does not know
    /// yet: nothing to do. New effects outside would stay behind.
    Released,
}

/// A deletion that waits for a finalizer.
#[must_use = "the object stays until the cleanup is done"]
pub struct Cleanup<'a, K> {
    finalizer: Finalizer,
    writer: &'a Writer,
    object: &'a Item<K>,
    position: usize,
}

/// A finalizer could not be added.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The cached object's metadata does not decode.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The server refused the write or the look at the object, or did not answer.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Finalizer {
    /// A finalizer of this name. The server refuses one without a domain and a `/`.
    pub const fn new(name: &'static str) -> Self {
        Self { name }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Adds the finalizer to an object that lacks it, and says what to do next. The server confirms a finalizer that the cache
    /// has, once per term ([what that costs](self#what-it-costs)).
    ///
    /// # Errors
    ///
    /// When the finalizer could not be added or confirmed. Then no effect outside may begin.
    ///
    /// # Cancel safety
    ///
    /// Safe: the finalizer is added or not.
    pub async fn guard<'a, K>(
        &self,
        writer: &'a Writer,
        object: &'a Item<K>,
    ) -> Result<Guarded<'a, K>, GuardError>
    where
        K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
    {
        let position = |owned: &Owned| owned.finalizers().iter().position(|name| name == self.name);
        let (uid, confirmed) = (object.uid(), writer.confirmed());
        let mut owned = object.object().decode::<Owned>()?;
        let mut version = object.resource_version().clone();
        if position(&owned).is_some() && !confirmed.has(uid, self.name) {
            confirmed.turn().await;
            let Some(now) = writer.look(object).await? else { return Ok(Guarded::Released) };
            (owned, version) = now;
            if position(&owned).is_some() {
                confirmed.add(uid, self.name);
            }
        }
        match (position(&owned), owned.is_being_deleted()) {
            (Some(position), true) => {
                Ok(Guarded::Cleanup(Cleanup { finalizer: *self, writer, object, position }))
            }
            (None, true) => {
                confirmed.remove(uid, self.name);
                Ok(Guarded::Released)
            }
            (Some(_), false) => Ok(Guarded::Held),
            (None, false) => {
                let mut finalizers = owned.finalizers().to_vec();
                finalizers.push(self.name.to_owned());
                let patch = json!({ "metadata": {
                    "resourceVersion": version.to_string(),
                    "finalizers": finalizers,
                } });
                writer.locked().patch::<K>(object, patch).await?;
                confirmed.add(uid, self.name);
                Ok(Guarded::Held)
            }
        }
    }
}

impl<K: Resource<DynamicType = (), Scope: 'static>> Cleanup<'_, K> {
    /// Removes the finalizer, and no other. If it was the last one, the server deletes the object.
    ///
    /// # Errors
    ///
    /// When the server refuses the write, or does not answer. An object that is gone is no error.
    pub async fn done(self) -> Result<(), WriteError> {
        let path = format!("/metadata/finalizers/{}", self.position);
        let operations = vec![
            json!({ "op": "test", "path": path, "value": self.finalizer.name }),
            json!({ "op": "remove", "path": path }),
        ];
        // The tests are its preconditions: other fields may have changed.
        let writer = self.writer.unlocked();
        match writer.patch_as::<K, IgnoredAny>("patch", None, self.object, Patch::Json(operations)).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => self.writer.confirmed().remove(self.object.uid(), self.finalizer.name),
        }
        Ok(())
    }
}

impl<K> fmt::Debug for Guarded<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held => f.write_str("Held"),
            Self::Cleanup(cleanup) => cleanup.fmt(f),
            Self::Released => f.write_str("Released"),
        }
    }
}

impl<K> fmt::Debug for Cleanup<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cleanup")
            .field("finalizer", &self.finalizer.name)
            .field("object", self.object.key())
            .finish_non_exhaustive()
    }
}
