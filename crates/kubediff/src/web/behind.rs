//! The source of the answers: a history, or the daemon that has one.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use jiff::Zoned;
use serve::Body;

use super::error::UiError;
use super::remote::Remote;
use super::routes::Routes;
use super::store::{Asked, Place, Seen, Store};
use super::viewer::Viewer;
use crate::query::{QueryError, SourceArgs};

/// The source of the answers.
pub(crate) struct Behind {
    /// The name of the cluster, or of the daemon.
    pub(crate) name: String,
    way: Way,
}

/// The way to the answers.
enum Way {
    /// To a file or a database.
    History(Box<Routes>),
    /// To the daemon in a cluster.
    Daemon(Box<Remote>),
}

impl Behind {
    /// The source that the command line names.
    pub(crate) async fn open(source: &SourceArgs) -> Result<Self, UiError> {
        if let Some(name) = &source.daemon {
            let remote = Remote::open(name.clone(), source.clone()).await?;
            return Ok(Self { name: remote.name(), way: Way::Daemon(Box::new(remote)) });
        }
        // A named pipe in the place of the file would never answer.
        let source = source.clone();
        let store = tokio::task::spawn_blocking(move || store(&source, true));
        let store = store.await.map_err(UiError::Ended)??;
        let name = store.cluster.clone();
        Ok(Self { name, way: Way::History(Box::new(Routes::new(store, "http"))) })
    }

    /// Folds the stories of a history meanwhile.
    pub(crate) fn fold(&self) {
        if let Way::History(routes) = &self.way {
            fold(routes.store().clone());
        }
    }

    /// Answers a request of somebody who may see everything. The work ends when nobody waits for the answer.
    pub(crate) async fn answer(&self, request: &Request<Bytes>) -> Response<Body> {
        match &self.way {
            Way::History(routes) => routes.answer(request, &Viewer::Owner).await,
            Way::Daemon(remote) => remote.answer(request).await,
        }
    }
}

/// The history of the page.
pub(super) fn store(source: &SourceArgs, is_fixed: bool) -> Result<Arc<Store>, UiError> {
    let location = source.location()?;
    let (cluster, beside) = (source.cluster(&location)?, location.file().map(Path::to_owned));
    let place = Place { location, cluster, beside };
    let now = source.now.clone();
    let zone = now.clone().unwrap_or_else(Zoned::now).time_zone().clone();
    // The clock of the person who asks a daemon goes on.
    let fixed = now.filter(|_| is_fixed).map(|now| now.timestamp());
    Ok(Arc::new(Store::open(place, zone, fixed).map_err(QueryError::from)?))
}

/// Folds the stories meanwhile: the first answer need not wait.
pub(super) fn fold(store: Arc<Store>) {
    tokio::spawn(async move {
        let fold = |asked: &mut Asked<'_>| asked.store.stories(asked.reader, asked.now.timestamp()).map(drop);
        let _ = store.ask(Seen::default(), fold).await;
    });
}
