//! The streams of all informers as one.

use std::collections::BTreeMap;

use futures_util::stream::{BoxStream, SelectAll, StreamExt, select};
use informer::{
    Change as CacheChange, Error, FieldSelector, Informer, InvalidSelector, Object, ResourceType,
    SharedInformerFactory, Status, WhenFull,
};
use tokio_util::sync::CancellationToken;

use crate::model::targets::Target;

/// An item of an informer's stream.
pub(super) enum News {
    /// A change.
    CacheChange {
        told: CacheChange<Object>,
        /// The resource appeared while we watched, so its initial objects are new too.
        announce_first: bool,
    },
    /// Where it stands.
    Status(Status),
}

/// The running informers, and their streams.
#[derive(Default)]
pub(super) struct Streams {
    all: SelectAll<BoxStream<'static, (Target, News)>>,
    running: BTreeMap<Target, Running>,
}

struct Running {
    informer: Informer<Object>,
    /// Ends the streams, and with them the informer. A resource that is gone from discovery has delivered its deletions
    /// before.
    end: CancellationToken,
}

/// A target that cannot be watched.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotAdded {
    /// Its name cannot be selected.
    #[error(transparent)]
    Selector(#[from] InvalidSelector),
    /// The informer cannot be made.
    #[error(transparent)]
    Informer(#[from] Error),
}

impl Streams {
    pub(super) fn add(
        &mut self,
        factory: &SharedInformerFactory,
        target: &Target,
        at_start: bool,
    ) -> Result<(), NotAdded> {
        let factory = match &target.name {
            None => factory.clone(),
            Some(name) => factory.with_fields(FieldSelector::EVERYTHING.equals("metadata.name", name)?)?,
        };
        let informer = factory.informer_of::<Object>(target.resource.clone());
        // The loop takes each change at once, whatever the reader of the output does: nothing is merged here. The inbox
        // bounds the changes that wait for the reader.
        let changes = informer.subscribe().every_change(usize::MAX, WhenFull::Coalesce).changes()?;
        let told = changes.map(move |told| News::CacheChange { told, announce_first: !at_start });
        let status = informer.status_changes().map(News::Status);
        let end = CancellationToken::new();
        let name = target.clone();
        let news = select(told, status)
            .take_until(end.clone().cancelled_owned())
            .map(move |news| (name.clone(), news));
        self.all.push(news.boxed());
        self.running.insert(target.clone(), Running { informer, end });
        Ok(())
    }

    pub(super) fn remove(&mut self, target: &Target) {
        if let Some(running) = self.running.remove(target) {
            running.end.cancel();
        }
    }

    /// Ends an informer: one that is added after it lists anew.
    pub(super) async fn stop(&mut self, target: &Target) {
        if let Some(running) = self.running.remove(target) {
            running.end.cancel();
            running.informer.stop().await;
        }
    }

    /// The next news of any of them; pends while there is none.
    pub(super) async fn next(&mut self) -> Option<(Target, News)> {
        match self.all.next().await {
            None => std::future::pending().await,
            news => news,
        }
    }

    /// How many objects all of them have.
    pub(super) fn objects(&self) -> usize {
        self.running.values().map(|running| running.informer.len()).sum()
    }

    /// The informers of Secrets, if they are watched: of all, or of each that was named.
    pub(super) fn secrets(&self) -> Vec<Informer<Object>> {
        let of_secrets = self.running.iter().filter(|(target, _)| is_secrets(&target.resource));
        of_secrets.map(|(_, running)| running.informer.clone()).collect()
    }

    /// Whether this target has no object.
    pub(super) fn is_empty(&self, target: &Target) -> bool {
        self.running.get(target).is_none_or(|running| running.informer.is_empty())
    }

    /// Retries denied requests at once.
    pub(super) fn retry_denied(&self) {
        for running in self.running.values() {
            if matches!(running.informer.status(), Status::Denied { .. }) {
                running.informer.retry_now();
            }
        }
    }
}

/// Whether these are the Secrets whose values are looked for in other objects.
pub(super) fn is_secrets(resource: &ResourceType) -> bool {
    resource.group.is_empty() && resource.plural == "secrets"
}
