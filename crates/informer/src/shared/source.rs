//! What feeds a cache: one list and watch per scope.

use std::collections::HashMap;
use std::sync::Arc;

use informer_core::{Scope, SourceId};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

/// The sources that run.
#[derive(Default)]
pub(super) struct Sources(HashMap<Scope, Source>);

pub(super) struct Source {
    id: SourceId,
    control: Control,
    ended: oneshot::Receiver<()>,
}

/// How a source's task is told something.
#[derive(Clone)]
pub(super) struct Control {
    pub(super) stop: CancellationToken,
    pub(super) wake: Arc<Notify>,
}

impl Sources {
    pub(super) fn contains(&self, scope: &Scope) -> bool {
        self.0.contains_key(scope)
    }

    /// Notes a source; its task holds the sender for as long as it runs.
    pub(super) fn insert(
        &mut self,
        scope: Scope,
        id: SourceId,
        stop: CancellationToken,
    ) -> (Control, oneshot::Sender<()>) {
        let (running, ended) = oneshot::channel();
        let control = Control { stop, wake: Arc::default() };
        self.0.insert(scope, Source { id, control: control.clone(), ended });
        (control, running)
    }

    pub(super) fn remove(&mut self, scope: &Scope) -> Option<Source> {
        self.0.remove(scope)
    }

    pub(super) fn wake_all(&self) {
        for source in self.0.values() {
            source.control.wake.notify_one();
        }
    }
}

impl Source {
    pub(super) fn id(&self) -> SourceId {
        self.id
    }

    pub(super) fn stop(&self) {
        self.control.stop.cancel();
    }

    /// Waits for the end of the task.
    pub(super) async fn ended(self) {
        // The sender is dropped with the task; nothing is ever sent.
        let _ = self.ended.await;
    }
}
