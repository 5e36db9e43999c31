//! The embedded server without a network, so that tokio's paused time counts, and with faults.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{StreamExt, once};
use http::{Method, Request};
use http_body_util::BodyExt;
use informer::transport::{Response, Transport, TransportError};
use informer_controller::Host;
use informer_controller::election::{Election, ElectionBuilder};
use serde_json::Value;
use testapi::{Api, Gvr};
use tokio::time::{Instant, timeout};

/// The fate of the requests of one candidate.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum Fault {
    #[default]
    None,
    /// No request arrives.
    Hangs,
    /// Writes are carried out, but not answered.
    WritesUnanswered,
    /// Every request is answered like this.
    Answers(u16, &'static str),
}

/// Lets simulated time pass.
pub(crate) async fn pass(duration: Duration) {
    let _ = timeout(duration, std::future::pending::<()>()).await;
}

/// The connection of one candidate.
#[derive(Clone)]
pub(crate) struct Wire {
    api: Api,
    fault: Arc<Mutex<Fault>>,
    refreshed: Arc<Mutex<u32>>,
}

impl Wire {
    pub(crate) fn to(api: &Api) -> Self {
        Self { api: api.clone(), fault: Arc::default(), refreshed: Arc::default() }
    }

    pub(crate) fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    pub(crate) fn refreshed(&self) -> u32 {
        *self.refreshed.lock().unwrap()
    }

    /// A candidate for the lease `default/cart`, with the defaults, on tokio's clock.
    pub(crate) fn candidate(&self, identity: &str) -> ElectionBuilder {
        Election::builder_with_transport(self.clone(), "default", "cart")
            .identity(identity)
            .host(host(identity))
    }
}

/// A host on tokio's clock.
pub(crate) fn host(identity: &str) -> Host {
    let start = Instant::now();
    let seed = identity.bytes().map(u64::from).sum();
    Host::default().with_uptime(move || start.elapsed()).with_seed(seed)
}

impl Transport for Wire {
    fn send(&self, request: Request<Vec<u8>>) -> BoxFuture<'static, Result<Response, TransportError>> {
        let (api, fault) = (self.api.clone(), *self.fault.lock().unwrap());
        Box::pin(async move {
            let is_write = request.method() != Method::GET;
            // As on a network.
            pass(Duration::from_millis(5)).await;
            let (head, body) = match fault {
                Fault::Hangs => std::future::pending().await,
                Fault::Answers(code, body) => {
                    let response = http::Response::builder().status(code).body(()).unwrap();
                    (response.into_parts().0, Bytes::from(body))
                }
                Fault::None | Fault::WritesUnanswered => {
                    let (head, body) = api.handle(request.map(Bytes::from)).await.into_parts();
                    (head, body.collect().await.unwrap().to_bytes())
                }
            };
            if is_write && fault == Fault::WritesUnanswered {
                std::future::pending::<()>().await;
            }
            Ok(Response { head, body: once(async { Ok(body) }).boxed() })
        })
    }

    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>> {
        *self.refreshed.lock().unwrap() += 1;
        Box::pin(async { Ok(()) })
    }
}

/// The lease as the server has it.
pub(crate) struct Lease<'a>(pub(crate) &'a Api);

impl Lease<'_> {
    fn leases() -> Gvr {
        Gvr::new("coordination.k8s.io/v1", "leases")
    }

    pub(crate) fn get(&self) -> Value {
        self.0.get(&Self::leases(), "default", "cart").unwrap()
    }

    pub(crate) fn spec(&self, field: &str) -> Value {
        self.get()["spec"][field].clone()
    }

    pub(crate) fn edit(&self, change: impl FnOnce(&mut Value)) {
        let mut lease = self.get();
        change(&mut lease);
        self.0.update(&Self::leases(), lease).unwrap();
    }

    pub(crate) fn delete(&self) {
        self.0.delete(&Self::leases(), "default", "cart").unwrap();
    }
}
