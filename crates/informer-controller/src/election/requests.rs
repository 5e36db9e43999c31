//! The requests of an election, each with its time limit.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use http::{Method, StatusCode};
use informer::transport::{Transport, TransportError};
use informer::{ApiStatus, error_chain};
use tokio::time::timeout;

use super::ElectionError;
use super::exchange::exchange;
use super::lease::{API_VERSION, Lease};
use super::logic::{Answer, Request};

/// Carries the requests for one lease.
pub(super) struct Requests {
    transport: Arc<dyn Transport>,
    namespace: String,
    name: String,
    limit: Duration,
}

/// An answer for the logic, and what was wrong if it is [`Answer::Unknown`].
pub(super) struct Answered {
    pub(super) answer: Answer,
    pub(super) problem: Option<String>,
}

impl Requests {
    pub(super) fn new(transport: Arc<dyn Transport>, namespace: &str, name: &str, limit: Duration) -> Self {
        Self { transport, namespace: namespace.to_owned(), name: name.to_owned(), limit }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// `shop/cart`
    pub(super) fn lease(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Sends a request and waits for its answer, for the limit at most.
    ///
    /// # Errors
    ///
    /// When trying again will not help.
    pub(super) async fn send(&self, request: &Request) -> Result<Answered, ElectionError> {
        match timeout(self.limit, self.exchange(request)).await {
            Ok(Ok((status, body))) => self.understand(request, status, &body).await,
            Ok(Err(error)) => Ok(unknown(error_chain(&error))),
            Err(_) => Ok(unknown(format!("no answer within {:?}", self.limit))),
        }
    }

    async fn exchange(&self, request: &Request) -> Result<(StatusCode, BytesMut), TransportError> {
        let collection = format!("/apis/{API_VERSION}/namespaces/{}/leases", self.namespace);
        let named = format!("{collection}/{}", self.name);
        let (method, path, lease) = match request {
            Request::Get => (Method::GET, named, None),
            Request::Create(lease) => (Method::POST, collection, Some(lease)),
            Request::Update(lease) => (Method::PUT, named, Some(lease)),
        };
        exchange(&*self.transport, method, path, lease).await
    }

    async fn understand(
        &self,
        request: &Request,
        status: StatusCode,
        body: &[u8],
    ) -> Result<Answered, ElectionError> {
        if status.is_success() {
            let lease = serde_json::from_slice(body);
            let lease: Lease = lease.map_err(|error| ElectionError::malformed(&self.lease(), &error))?;
            return Ok(known(Answer::Lease(lease)));
        }
        let refusal = ApiStatus::from_body(status.as_u16(), body);
        match status {
            // Only a creation does not expect it: then the namespace or the API is missing.
            StatusCode::NOT_FOUND if matches!(request, Request::Create(_)) => {
                Err(ElectionError::not_found(&self.lease(), refusal))
            }
            StatusCode::NOT_FOUND => Ok(known(Answer::NotFound)),
            StatusCode::CONFLICT => Ok(known(Answer::Conflict)),
            StatusCode::UNAUTHORIZED => {
                // The next request has new credentials, or fails for a reason that says more.
                let _ = self.transport.refresh_credentials().await;
                Ok(unknown(refusal.message))
            }
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Ok(unknown(refusal.message)),
            _ if status.is_client_error() => Err(ElectionError::refused(&self.lease(), refusal)),
            _ => Ok(unknown(format!("{status}: {}", refusal.message))),
        }
    }
}

fn known(answer: Answer) -> Answered {
    Answered { answer, problem: None }
}

fn unknown(problem: String) -> Answered {
    Answered { answer: Answer::Unknown, problem: Some(problem) }
}
