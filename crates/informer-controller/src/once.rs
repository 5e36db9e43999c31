//! Clients that send each write once.

use std::convert::Infallible;
use std::future::ready;

use http::{Method, Request, Response};
use informer::kube::Client;
use informer::kube::client::client::Body;
use tower::{BoxError, service_fn};

/// The same client, below which no layer sends a write again. Reads are repeated as before.
///
/// kube's client repeats what is answered with 429, 503 or 504. A creation may have been carried out by then, and the
/// [ledger](crate::writer) has to know of each. A layer repeats a request by a copy of it, and kube copies a body only if it was
/// made of bytes; one that came out of a service cannot be copied.
pub(crate) fn sending_once(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let seal = Client::new(
        service_fn(|request: Request<Body>| ready(Ok::<_, Infallible>(Response::new(request.into_body())))),
        "",
    );
    let service = service_fn(move |request: Request<Body>| {
        let (client, seal) = (client.clone(), seal.clone());
        async move {
            let (head, mut body) = request.into_parts();
            if head.method != Method::GET {
                body = seal.send(Request::new(body)).await?.into_body();
            }
            Ok::<_, BoxError>(client.send(Request::from_parts(head, body)).await?)
        }
    });
    Client::new(service, namespace)
}
