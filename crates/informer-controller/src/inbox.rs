//! Where changes wait for the control loop.

use std::sync::{Arc, OnceLock};

use informer::{Object, ObjectKey};
use informer_core::Time;
use informer_core::control::Control;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::endings::Endings;
use crate::sync::{Mutex, MutexGuard, lock};
use crate::trigger::{Trigger, Triggers};

/// Whether an object exists.
pub(crate) type Exists = Arc<dyn Fn(&ObjectKey) -> bool + Send + Sync>;

/// Whether an object belongs to this process, where several divide them.
pub(crate) type Ours = Box<dyn Fn(&Object) -> bool + Send + Sync>;

/// The state of the control loop, to which sources add keys. No code of the user runs under its lock.
pub(crate) struct Inbox {
    control: Mutex<Control>,
    /// Wakes the loop.
    changed: Notify,
    start: Instant,
    /// Tells which objects exist, while another process leads.
    standby: Mutex<Option<Exists>>,
    ours: OnceLock<Ours>,
    /// How reconciliations have ended.
    pub(crate) endings: Endings,
}

impl Inbox {
    pub(crate) fn new(control: Control) -> Self {
        Self {
            control: Mutex::new(control),
            changed: Notify::new(),
            start: Instant::now(),
            standby: Mutex::new(None),
            ours: OnceLock::new(),
            endings: Endings::default(),
        }
    }

    /// Only these objects are this process's own when they go, from now on.
    pub(crate) fn owns(&self, ours: Ours) {
        // Once per controller.
        let _ = self.ours.set(ours);
    }

    /// Whether the deletion of an object is for this process to reconcile.
    pub(crate) fn is_ours(&self, object: &Object) -> bool {
        self.ours.get().is_none_or(|ours| ours(object))
    }

    pub(crate) fn changed(&self, key: ObjectKey, trigger: Trigger, priority: i32) {
        self.add(key, Triggers::from(trigger).bits(), priority);
    }

    /// The object with this key was seen to go.
    pub(crate) fn gone(&self, key: ObjectKey, trigger: Trigger, priority: i32) {
        self.add(key, Triggers::from(trigger).bits() | Triggers::GONE, priority);
    }

    /// While another process leads, a key is kept only if its object exists: that process sees deletions, and reconciles them.
    fn add(&self, key: ObjectKey, triggers: u32, priority: i32) {
        let is_gone = lock(&self.standby).clone().is_some_and(|exists| !exists(&key));
        let mut control = self.control();
        if is_gone {
            return control.forget(self.now(), &key);
        }
        control.changed(self.now(), key, triggers, priority);
        drop(control);
        self.changed.notify_one();
    }

    /// Another process leads from now on, and `exists` tells which objects there are. With `None`, this one leads.
    pub(crate) fn stand_by(&self, exists: Option<Exists>) {
        *lock(&self.standby) = exists;
    }

    pub(crate) fn control(&self) -> MutexGuard<'_, Control> {
        lock(&self.control)
    }

    /// Waits until a key was added since the last wait.
    pub(crate) async fn wait(&self) {
        self.changed.notified().await;
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_start(self.start.elapsed())
    }

    pub(crate) fn instant(&self, time: Time) -> Instant {
        self.start + time.since(Time::ZERO)
    }
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}
