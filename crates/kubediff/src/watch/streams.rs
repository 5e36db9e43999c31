//! The streams of all informers as one.

use std::collections::BTreeMap;

use futures_util::stream::{BoxStream, SelectAll, StreamExt, select};
use informer::{
    Change as Told, Error, Informer, Object, ResourceType, SharedInformerFactory, Status, WhenFull,
};
use tokio_util::sync::CancellationToken;

/// An item of an informer's stream.
pub(super) enum News {
    /// A change.
    Told {
        told: Told<Object>,
        /// The resource appeared while we watched, so its initial objects are new too.
        announce_first: bool,
    },
    /// Where it stands.
    Status(Status),
}

/// The running informers, and their streams.
#[derive(Default)]
pub(super) struct Streams {
    all: SelectAll<BoxStream<'static, (ResourceType, News)>>,
    running: BTreeMap<ResourceType, Running>,
}

struct Running {
    informer: Informer<Object>,
    /// Ends the streams, and with them the informer. A resource that is gone from discovery has delivered its deletions
    /// before.
    end: CancellationToken,
}

/// This many changes of one resource may wait for the terminal; beyond that, those of one object are coalesced.
const WAITING: usize = 4096;

impl Streams {
    pub(super) fn add(
        &mut self,
        factory: &SharedInformerFactory,
        resource: ResourceType,
        at_start: bool,
    ) -> Result<(), Error> {
        let informer = factory.informer_of::<Object>(resource.clone());
        let changes = informer.subscribe().every_change(WAITING, WhenFull::Coalesce).changes()?;
        let told = changes.map(move |told| News::Told { told, announce_first: !at_start });
        let status = informer.status_changes().map(News::Status);
        let end = CancellationToken::new();
        let name = resource.clone();
        let news = select(told, status)
            .take_until(end.clone().cancelled_owned())
            .map(move |news| (name.clone(), news));
        self.all.push(news.boxed());
        self.running.insert(resource, Running { informer, end });
        Ok(())
    }

    pub(super) fn remove(&mut self, resource: &ResourceType) {
        if let Some(running) = self.running.remove(resource) {
            running.end.cancel();
        }
    }

    /// The next news of any of them; pends while there is none.
    pub(super) async fn next(&mut self) -> Option<(ResourceType, News)> {
        match self.all.next().await {
            None => std::future::pending().await,
            news => news,
        }
    }

    /// How many objects all of them have.
    pub(super) fn objects(&self) -> usize {
        self.running.values().map(|running| running.informer.len()).sum()
    }

    /// The informer of Secrets, if they are watched.
    pub(super) fn secrets(&self) -> Option<Informer<Object>> {
        let mut running = self.running.iter().filter(|(resource, _)| is_secrets(resource));
        running.next().map(|(_, running)| running.informer.clone())
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
