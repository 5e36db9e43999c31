//! The layers that a program puts around the clients of a transport.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use kube_client::Client;
use kube_client::client::Body;
use tower::util::BoxService;
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};

/// The client of a transport as a service: what a layer of [`FactoryBuilder::client_layer`](crate::FactoryBuilder::client_layer)
/// is put around.
pub type ClientService = BoxService<Request<Body>, Response<Body>, BoxError>;

/// All layers of a program, as one function. Called for each client, and there is a new one when credentials change.
#[derive(Clone, Default)]
pub(crate) struct Layers(Option<Arc<dyn Fn(Client) -> Client + Send + Sync>>);

impl Layers {
    /// Puts one more around those that there are.
    pub(crate) fn push<L, B>(&mut self, layer: L)
    where
        L: Layer<ClientService> + Send + Sync + 'static,
        L::Service: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        <L::Service as Service<Request<Body>>>::Error: Into<BoxError>,
        <L::Service as Service<Request<Body>>>::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let inner = self.clone();
        self.0 = Some(Arc::new(move |client| {
            let namespace = client.default_namespace().to_owned();
            Client::new(layer.layer(service(inner.around(client))), namespace)
        }));
    }

    pub(super) fn around(&self, client: Client) -> Client {
        match &self.0 {
            Some(layers) => layers(client),
            None => client,
        }
    }
}

fn service(client: Client) -> ClientService {
    let send = move |request| {
        let client = client.clone();
        async move { Ok(client.send(request).await?) }
    };
    service_fn(send).boxed()
}
