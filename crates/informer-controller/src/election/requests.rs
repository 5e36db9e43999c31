//! The requests for leases, each with its time limit.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::TryStreamExt;
use http::{Method, Request, StatusCode, header};
use informer::transport::{Response, Transport, TransportError};
use informer::{ApiStatus, error_chain, path_segment};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::ElectionError;
use super::lease::{API_VERSION, Lease};

/// The longest answer that is read. A lease has a few hundred bytes, that with a map of 1,000 members 200,000.
const LONGEST: usize = 8 << 20;

/// Carries the requests for the leases of one namespace.
#[allow(missing_debug_implementations, reason = "hidden")]
pub struct LeaseClient {
    transport: Arc<dyn Transport>,
    namespace: String,
    limit: Duration,
}

/// Why a request has no result.
#[derive(Debug)]
pub enum Problem {
    /// It may pass.
    Passing(String),
    /// Trying again will not help, as far as one can know.
    Lasting(ElectionError),
}

impl Problem {
    /// The status code of a refusal that lasts.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Lasting(error) => error.api_status().map(|status| status.code),
            Self::Passing(_) => None,
        }
    }
}

impl LeaseClient {
    pub(super) fn new(transport: Arc<dyn Transport>, namespace: &str, limit: Duration) -> Self {
        Self { transport, namespace: namespace.to_owned(), limit }
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The lease of this name.
    pub async fn get(&self, name: &str) -> Result<Lease, Problem> {
        self.ask(name, Method::GET, &self.path(name), None::<&Value>).await
    }

    /// The leases with a label, all of one moment. No resourceVersion: the newest state.
    /// <https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list>
    pub async fn list(&self, label: &str, value: &str) -> Result<Vec<Lease>, Problem> {
        #[derive(Deserialize)]
        struct List {
            #[serde(default)]
            items: Vec<Lease>,
        }

        let selector = path_segment(&format!("{label}={value}"));
        let path = format!("{}?labelSelector={selector}", self.collection());
        let list: List = self.ask(value, Method::GET, &path, None::<&Value>).await?;
        Ok(list.items)
    }

    /// Creates a lease, or replaces the version of it that a server has returned.
    pub async fn write(&self, lease: &Lease) -> Result<Lease, Problem> {
        let name = lease.name();
        if lease.exists() {
            self.ask(name, Method::PUT, &self.path(name), Some(lease)).await
        } else {
            self.ask(name, Method::POST, &self.collection(), Some(lease)).await
        }
    }

    /// Deletes a lease, if it is still this version.
    pub async fn delete(&self, lease: &Lease) -> Result<(), Problem> {
        let Some((uid, version)) = lease.incarnation() else { return Ok(()) };
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": { "uid": uid, "resourceVersion": version },
        });
        let path = self.path(lease.name());
        self.ask::<Value>(lease.name(), Method::DELETE, &path, Some(&options)).await.map(drop)
    }

    fn collection(&self) -> String {
        format!("/apis/{API_VERSION}/namespaces/{}/leases", path_segment(&self.namespace))
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{}", self.collection(), path_segment(name))
    }

    /// Sends a request and waits for its answer, for the limit at most. Errors name the lease.
    async fn ask<A: DeserializeOwned>(
        &self,
        name: &str,
        method: Method,
        path: &str,
        body: Option<&(impl Serialize + Sync)>,
    ) -> Result<A, Problem> {
        let creates = method == Method::POST;
        let (status, body) = match timeout(self.limit, self.exchange(method, path, body)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(Problem::Passing(error_chain(&error))),
            Err(_) => return Err(Problem::Passing(format!("no answer within {:?}", self.limit))),
        };
        let lease = format!("{}/{name}", self.namespace);
        if status.is_success() {
            let answer = serde_json::from_slice(&body);
            return answer.map_err(|error| Problem::Lasting(ElectionError::malformed(&lease, &error)));
        }
        let refusal = ApiStatus::from_body(status.as_u16(), &body);
        Err(match status {
            StatusCode::UNAUTHORIZED => {
                // The next request has new credentials, or fails for a reason that says more.
                let _ = self.transport.refresh_credentials().await;
                Problem::Passing(refusal.message)
            }
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Problem::Passing(refusal.message),
            StatusCode::NOT_FOUND if creates => Problem::Lasting(ElectionError::not_found(&lease, refusal)),
            _ if status.is_client_error() => Problem::Lasting(ElectionError::refused(&lease, refusal)),
            _ => Problem::Passing(format!("{status}: {}", refusal.message)),
        })
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<&(impl Serialize + Sync)>,
    ) -> Result<(StatusCode, BytesMut), TransportError> {
        let failed = |error| TransportError::new("the request could not be built", error);
        let body = match body {
            Some(body) => serde_json::to_vec(body).map_err(|error| failed(Some(error.into())))?,
            None => Vec::new(),
        };
        let json = "application/json";
        let builder = Request::builder().method(method).uri(path).header(header::ACCEPT, json);
        let request = builder.header(header::CONTENT_TYPE, json).body(body);
        let request = request.map_err(|error| failed(Some(error.into())))?;
        let Response { head, mut body } = self.transport.send(request).await?;
        let mut read = BytesMut::new();
        while let Some(chunk) = body.try_next().await? {
            read.extend_from_slice(&chunk);
            if read.len() > LONGEST {
                return Err(TransportError::new("the answer is longer than leases can be", None));
            }
        }
        Ok((head.status, read))
    }
}
