//! The listener to which an API server sends its audit events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use serve::http::{ConnectionInfo, ServerOptions, Serving};
use serve::{Body, full};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::task::AbortOnDropHandle;

use super::super::ServeError;
use super::super::bearer::{bearer, same};
use crate::audit::{Read, events};
use crate::config::{AuditWebhook, Loaded};
use crate::text::terminal::say;
use crate::web::Bound;

/// An API server sends batches of 10 MiB at most, if nobody has changed that.
const BATCH: usize = 16 << 20;
/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(20);
/// Connections at once, and requests of each.
const CONNECTIONS: usize = 16;
const REQUESTS: u32 = 4;

/// A listener that takes events. Dropping it closes the port.
pub(super) struct Webhook {
    _serving: Serving,
    _renewing: Option<AbortOnDropHandle<()>>,
}

struct Receiver {
    token: String,
    events: mpsc::Sender<Read>,
    /// Whether a request without the token was told.
    is_told: AtomicBool,
}

impl Webhook {
    pub(super) async fn open(
        settings: &AuditWebhook,
        loaded: &Loaded,
        events: mpsc::Sender<Read>,
    ) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Token { field: "audit.webhook.token", source };
        let token = settings.token.reveal(loaded.folder()).map_err(failed)?;
        let options = ServerOptions {
            max_request_body: BATCH,
            max_concurrent_streams: REQUESTS,
            read_timeout: Some(PATIENCE),
            max_connections: Some(CONNECTIONS),
            ..ServerOptions::default()
        };
        let field = "audit.webhook.listen";
        let bound =
            Bound::bind(field, settings.listen.0, Some(&settings.tls), loaded.folder(), options).await?;
        say(&format!("audit events are taken on https://{}", bound.server.address()));
        let receiver = Arc::new(Receiver { token, events, is_told: AtomicBool::new(false) });
        let serving = bound.server.serve(move |request: Request<Bytes>, _: ConnectionInfo| {
            let receiver = receiver.clone();
            async move { receiver.answer(&request) }
        });
        Ok(Self { _serving: serving, _renewing: bound.renewing })
    }
}

impl Receiver {
    fn answer(&self, request: &Request<Bytes>) -> Response<Body> {
        let sent = request.headers().get(header::AUTHORIZATION).and_then(|value| bearer(value.as_bytes()));
        if !sent.is_some_and(|sent| same(self.token.as_bytes(), sent)) {
            if !self.is_told.swap(true, Ordering::Relaxed) {
                say(
                    "an audit webhook came without its token: put that of `audit.webhook.token` into the file of --audit-webhook-config-file",
                );
            }
            return text(
                StatusCode::UNAUTHORIZED,
                "audit events need the bearer token of `audit.webhook.token`: put it into the file of --audit-webhook-config-file\n",
            );
        }
        if request.method() != Method::POST {
            return text(StatusCode::METHOD_NOT_ALLOWED, "audit events come by POST\n");
        }
        let Some(read) = events(request.body()) else {
            return text(StatusCode::BAD_REQUEST, "expected an EventList of audit.k8s.io/v1, in JSON\n");
        };
        match self.events.try_send(read) {
            Ok(()) => text(StatusCode::OK, ""),
            Err(TrySendError::Full(_)) => {
                let mut busy = text(StatusCode::TOO_MANY_REQUESTS, "many events wait: send these again\n");
                busy.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
                busy
            }
            Err(TrySendError::Closed(_)) => text(StatusCode::SERVICE_UNAVAILABLE, "this process ends\n"),
        }
    }
}

fn text(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(full(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response
}
