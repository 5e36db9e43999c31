//! The embedded server without a network or threads, so that tests can pause the time.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use http::Request;
use http_body_util::BodyExt;
use informer::SharedInformerFactory;
use informer::kube::Client;
use informer::kube::client::client::Body;
use informer::transport::{Response, Transport, TransportError};
use serde_json::Value;
use testapi::{Api, Gvr};

/// A way to the server.
#[derive(Clone, Default)]
pub(crate) struct Wireless(pub(crate) Api);

impl Wireless {
    /// A server with these objects.
    pub(crate) fn with(resource: &Gvr, objects: impl IntoIterator<Item = Value>) -> Self {
        let this = Self::default();
        for object in objects {
            this.0.create(resource, object).unwrap();
        }
        this
    }

    pub(crate) fn factory(&self) -> SharedInformerFactory {
        SharedInformerFactory::builder_with_transport(self.clone()).deterministic(7).build().unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        let api = self.0.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                Ok::<_, Infallible>(api.handle(Request::from_parts(head, body)).await)
            }
        });
        Client::new(service, "default")
    }
}

impl Transport for Wireless {
    fn send(&self, request: Request<Vec<u8>>) -> BoxFuture<'static, Result<Response, TransportError>> {
        let api = self.0.clone();
        Box::pin(async move {
            let (head, body) = api.handle(request.map(Bytes::from)).await.into_parts();
            let broken =
                |error: std::io::Error| TransportError::new("the answer broke off", Some(error.into()));
            Ok(Response { head, body: body.into_data_stream().map_err(broken).boxed() })
        })
    }

    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>> {
        std::future::ready(Ok(())).boxed()
    }
}

/// Lets time pass, which is paused: this takes none.
pub(crate) async fn pass(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}
