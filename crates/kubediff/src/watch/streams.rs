//! The streams of all informers as one.

use std::collections::BTreeMap;

use futures_util::stream::{BoxStream, SelectAll, StreamExt, select};
use informer::{
    Change as Told, Error, Informer, Object, ResourceType, SharedInformerFactory, Status, WhenFull,
};
use tokio_util::sync::CancellationToken;

/// What an informer has to say.
pub(super) enum News {
    /// A change.
    Told {
        told: Told<Object>,
        /// The resource came up while we watched, so what it has first is new too.
        announce_first: bool,
    },
    /// Where it stands.
    Status(Status),
}

/// The informers that run, and what they tell.
#[derive(Default)]
pub(super) struct Streams {
    all: SelectAll<BoxStream<'static, (ResourceType, News)>>,
    running: BTreeMap<ResourceType, Running>,
}

struct Running {
    informer: Informer<Object>,
    /// Ends the streams, and with them the informer. What is gone from discovery has told its deletions before.
    end: CancellationToken,
}

/// So many changes of one resource may wait for the terminal; past that, those of one object are merged.
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

    /// Asks again at once for what was denied.
    pub(super) fn retry_denied(&self) {
        for running in self.running.values() {
            if matches!(running.informer.status(), Status::Denied { .. }) {
                running.informer.retry_now();
            }
        }
    }
}
