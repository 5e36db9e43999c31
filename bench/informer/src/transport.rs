//! A transport without a server: a list of small pods, and a watch whose events come from a channel.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use http::header::CONTENT_TYPE;
use informer::transport::{Response, Transport, TransportError};
use tokio::sync::mpsc::Receiver;

pub struct Canned {
    list: Bytes,
    /// For the first watch.
    events: Arc<Mutex<Option<Receiver<Bytes>>>>,
}

impl Canned {
    pub fn new(list: Vec<u8>, events: Receiver<Bytes>) -> Self {
        Self { list: list.into(), events: Arc::new(Mutex::new(Some(events))) }
    }

    fn answer(&self, uri: &http::Uri) -> Result<Response, http::Error> {
        let is_watch = uri.query().is_some_and(|query| query.contains("watch="));
        let is_known = uri.path().ends_with("/pods");
        let status = if is_known { 200 } else { 404 };
        let (head, ()) = http::Response::builder()
            .status(status)
            .header(CONTENT_TYPE, "application/json")
            .body(())?
            .into_parts();
        let events = || self.events.lock().unwrap_or_else(PoisonError::into_inner).take();
        let body = match (is_known, is_watch) {
            (false, _) => stream::empty().boxed(),
            (true, false) => stream::iter([Ok(self.list.clone())]).boxed(),
            (true, true) => match events() {
                Some(events) => {
                    stream::unfold(events, |mut events| async { Some((Ok(events.recv().await?), events)) })
                        .boxed()
                }
                None => stream::pending().boxed(),
            },
        };
        Ok(Response { head, body })
    }
}

impl Transport for Canned {
    fn send(&self, request: http::Request<Vec<u8>>) -> BoxFuture<'static, Result<Response, TransportError>> {
        let answer = self.answer(request.uri());
        let answer = answer.map_err(|error| TransportError::new("no answer", Some(error.into())));
        std::future::ready(answer).boxed()
    }

    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>> {
        std::future::ready(Ok(())).boxed()
    }
}
