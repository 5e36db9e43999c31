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
use super::store::{Place, Seen, Store};
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
            let name = format!("{}/{}", name.namespace, name.name);
            return Ok(Self { name, way: Way::Daemon(Box::new(remote)) });
        }
        // A named pipe in the place of the file would never answer.
        let source = source.clone();
        let store = tokio::task::spawn_blocking(move || store(&source, true));
        let store = store.await.map_err(UiError::Ended)??;
        let name = store.cluster.clone();
        Ok(Self { name, way: Way::History(Box::new(Routes::new(store, "http"))) })
    }

    /// Answers a request of somebody who may see everything. The work ends when nobody waits for the answer.
    pub(crate) async fn answer(&self, request: &Request<Bytes>) -> Response<Body> {
        match &self.way {
            Way::History(routes) => routes.answer(request, &Viewer::Owner).await,
            Way::Daemon(remote) => remote.answer(request).await,
        }
    }
}

/// The history of the page. Its stories are folded meanwhile: the first page need not wait.
pub(super) fn store(source: &SourceArgs, is_fixed: bool) -> Result<Arc<Store>, UiError> {
    let location = source.location()?;
    let (cluster, beside) = (source.cluster(&location)?, location.file().map(Path::to_owned));
    let place = Place { location, cluster, beside };
    let now = source.now.clone();
    let zone = now.clone().unwrap_or_else(Zoned::now).time_zone().clone();
    // The clock of the person who asks a daemon goes on.
    let fixed = now.filter(|_| is_fixed).map(|now| now.timestamp());
    let store = Arc::new(Store::open(place, zone, fixed).map_err(QueryError::from)?);
    let folding = store.clone();
    tokio::runtime::Handle::current().spawn(async move {
        let _ = folding
            .ask(Seen::default(), |asked| asked.store.stories(asked.reader, asked.now.timestamp()).map(drop))
            .await;
    });
    Ok(store)
}
