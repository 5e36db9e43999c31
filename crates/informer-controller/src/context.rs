//! The input of a reconciliation.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use informer::kube::Client;
use informer::{DecodeError, Informer, Item, Object, ObjectKey, Snapshot, Uid, View};

use crate::caches::Caches;
use crate::host::Host;
use crate::recorder::{Event, Recorder};
use crate::trigger::Triggers;
use crate::writer::{Target, Writer};

/// One reconciliation of one object: what is known, and the means to change it.
///
/// The context has one snapshot of each informer of the controller, taken one after another when the reconciliation began.
/// Each has its own resourceVersion, and is as new as the change that woke this reconciliation and as this controller's own
/// writes for this object. They are not one instant of the cluster: the server has none across resources.
///
/// A clone is the same reconciliation. When the reconciler returns, the context's [`Writer`] refuses further writes.
///
/// ```no_run
/// use informer::Informer;
/// use informer_controller::{Context, Failure, Outcome};
/// use k8s_openapi::api::core::v1::{Node, Pod};
///
/// async fn reconcile(context: Context<Pod>, nodes: Informer<Node>) -> Result<Outcome, Failure> {
///     let Some(pod) = context.object() else { return Ok(Outcome::Done) };
///     let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
///     if let Some(node) = context.get(&nodes, node.unwrap_or_default())? {
///         println!("{} runs on {}", pod.key(), node.key());
///     }
///     Ok(Outcome::Done)
/// }
/// ```
pub struct Context<T> {
    key: ObjectKey,
    object: Option<Item<T>>,
    shared: Arc<Shared>,
}

/// The part without a type.
pub(crate) struct Shared {
    pub(crate) triggers: Triggers,
    pub(crate) failures: u32,
    pub(crate) caches: Arc<Caches>,
    pub(crate) snapshots: Arc<[Snapshot<Object>]>,
    pub(crate) writer: Writer,
    pub(crate) recorder: Recorder,
    pub(crate) host: Host,
    pub(crate) random: Mutex<fastrand::Rng>,
}

impl<T: View> Context<T> {
    /// Decodes the object, which is of the first informer.
    pub(crate) fn begin(
        key: ObjectKey,
        informer: &Informer<T>,
        shared: Arc<Shared>,
    ) -> Result<Self, DecodeError> {
        let mut context = Self { key, object: None, shared };
        context.object = context.get(informer, context.key.as_str())?;
        Ok(context)
    }

    /// The key of the object to reconcile.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The object to reconcile. `None` if it does not exist, or no longer, or if the informer has a selector that does not
    /// select it any more: then its existence is unknown to this controller.
    pub fn object(&self) -> Option<&Item<T>> {
        self.object.as_ref()
    }

    /// Why this reconciliation runs. A reconciler should do the same whatever the reason: between two reconciliations, and
    /// while the program did not run, reasons may have been missed.
    pub fn triggers(&self) -> Triggers {
        self.shared.triggers
    }

    /// How many times in a row the object's reconciliation has failed before this one.
    pub fn failures(&self) -> u32 {
        self.shared.failures
    }

    /// The state of an informer as it was when this reconciliation began.
    ///
    /// # Panics
    ///
    /// If the controller does not know the informer: name it with [`Controller::owns`](crate::Controller::owns),
    /// [`watches`](crate::Controller::watches) or [`reads`](crate::Controller::reads).
    #[allow(clippy::panic, reason = "a mistake of the program, which its first reconciliation shows")]
    pub fn snapshot<U: View>(&self, informer: &Informer<U>) -> Snapshot<U> {
        let number = self.shared.caches.number(informer);
        match number.and_then(|number| self.shared.snapshots.get(number)) {
            Some(snapshot) => snapshot.cast(),
            None => panic!("the controller does not know {informer:?}: add it with `Controller::reads`"),
        }
    }

    /// An object of an informer, by its key (`namespace/name` or `name`).
    ///
    /// # Errors
    ///
    /// When it does not decode as a `U`.
    ///
    /// # Panics
    ///
    /// As [`Context::snapshot`].
    pub fn get<U: View>(
        &self,
        informer: &Informer<U>,
        key: impl AsRef<str>,
    ) -> Result<Option<Item<U>>, DecodeError> {
        self.snapshot(informer).get(key)
    }

    /// The objects that the reconciled object controls: those with an owner reference to its uid that has `controller:
    /// true`. Empty if the reconciled object does not exist. O(number of hits).
    ///
    /// # Panics
    ///
    /// If the informer was not named with [`Controller::owns`](crate::Controller::owns).
    pub fn owned<U: View>(&self, informer: &Informer<U>) -> Vec<Item<U>> {
        match &self.object {
            Some(object) => self.owned_by(object.uid(), informer),
            None => Vec::new(),
        }
    }

    #[allow(clippy::panic, reason = "a mistake of the program, which its first reconciliation shows")]
    fn owned_by<U: View>(&self, owner: &Uid, informer: &Informer<U>) -> Vec<Item<U>> {
        match self.shared.caches.by_owner(informer) {
            Some(index) => {
                let snapshot = self.snapshot(informer);
                index.cast().lookup(&snapshot, owner).collect()
            }
            None => {
                panic!("the controller does not own objects of {informer:?}: add it with `Controller::owns`")
            }
        }
    }

    /// Writes objects, as this controller.
    pub fn writer(&self) -> &Writer {
        &self.shared.writer
    }

    /// Records an event about an object, for people to read. It is sent in the background, as this controller: this returns at
    /// once, and losing an event is no error. The module [`recorder`](crate::recorder) has the details.
    ///
    /// An event is not one of the controller's own writes: no reconciliation waits for it.
    pub fn event<K>(&self, about: impl Target<K>, event: Event) {
        self.shared.recorder.record(about, event);
    }

    /// The recorder of [`Context::event`].
    pub fn recorder(&self) -> &Recorder {
        &self.shared.recorder
    }

    /// The client of the writes, for other requests. Its writes are not recorded as those of the [`Writer`] are: the next
    /// reconciliation may not see them. They are sent once, too.
    pub fn unrecorded_client(&self) -> &Client {
        self.shared.writer.client()
    }

    /// The time.
    pub fn now(&self) -> jiff::Timestamp {
        self.shared.host.now()
    }

    /// Random numbers. Each call returns a generator of its own; the seeds follow from that of the [`Host`](crate::Host).
    pub fn random(&self) -> fastrand::Rng {
        self.shared.random.lock().unwrap_or_else(PoisonError::into_inner).fork()
    }
}

impl<T> Clone for Context<T> {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), object: self.object.clone(), shared: self.shared.clone() }
    }
}

impl<T> fmt::Debug for Context<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("key", &self.key)
            .field("object", &self.object)
            .field("triggers", &self.shared.triggers)
            .finish_non_exhaustive()
    }
}
