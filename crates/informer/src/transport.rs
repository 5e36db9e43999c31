//! How requests reach a server and bytes come back.
//!
//! The informer builds its requests and decodes the responses itself; a transport only carries them. [`KubeTransport`]
//! does it over kube-client, which knows kubeconfigs, credentials, TLS and proxies.

mod gzip;
mod http2;
mod kube;

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, Stream, StreamExt, TryStreamExt};

pub(crate) use gzip::Inflated;
pub use kube::KubeTransport;

/// The media type of Kubernetes' protobuf.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Carries requests to one server.
pub trait Transport: Send + Sync + 'static {
    /// Sends a request and resolves with the head of the answer, whatever its status.
    ///
    /// The future and the body are dropped to cancel the request.
    fn send(&self, request: http::Request<Vec<u8>>) -> BoxFuture<'static, Result<Response, TransportError>>;

    /// Reads the credentials again: the server has answered 401.
    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>>;
}

/// The head of an answer, and its body as it comes.
pub struct Response {
    /// Status and headers.
    pub head: http::response::Parts,
    /// The body's bytes, cut anywhere, as they were sent: not decompressed.
    pub body: BoxStream<'static, Result<Bytes, TransportError>>,
}

/// A request that was not answered, or an answer that broke off.
#[derive(Debug, thiserror::Error)]
#[error("{context}")]
pub struct TransportError {
    context: String,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl TransportError {
    /// An error with what was tried and why it failed.
    pub fn new(
        context: impl Into<String>,
        source: impl Into<Option<Box<dyn std::error::Error + Send + Sync>>>,
    ) -> Self {
        Self { context: context.into(), source: source.into() }
    }
}

impl Response {
    /// Tells of how many bytes the body's pieces are, as they come.
    pub(crate) fn inspect_bytes(self, mut seen: impl FnMut(usize) + Send + 'static) -> Self {
        let body = self.body.inspect_ok(move |bytes| seen(bytes.len()));
        Self { head: self.head, body: body.boxed() }
    }

    /// Whether the body is in protobuf, as its head says.
    pub(crate) fn is_protobuf(&self) -> bool {
        let content_type = self.head.headers.get(http::header::CONTENT_TYPE);
        content_type.is_some_and(|of| of.as_bytes().starts_with(PROTOBUF.as_bytes()))
    }

    /// The body, decompressed.
    pub(crate) fn into_content(self) -> Pin<Box<dyn Stream<Item = Result<Bytes, TransportError>> + Send>> {
        let gzip = self
            .head
            .headers
            .get(http::header::CONTENT_ENCODING)
            .is_some_and(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"gzip"));
        if gzip { Box::pin(Inflated::new(self.body)) } else { self.body }
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("status", &self.head.status).finish_non_exhaustive()
    }
}
