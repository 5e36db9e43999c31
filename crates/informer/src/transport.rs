//! How requests reach a server, and how response bytes come back.
//!
//! The informer builds its requests and decodes the responses itself; a transport only carries them. [`KubeTransport`]
//! does it over kube-client, which knows kubeconfigs, credentials, TLS and proxies.
//!
//! # TLS
//!
//! Features of this crate choose the TLS library:
//!
//! | feature | library | HTTP versions |
//! |---|---|---|
//! | `ring` (default) | rustls with the cryptography of ring | 1.1 and 2 |
//! | `aws-lc-rs` | rustls with the cryptography of AWS-LC; takes precedence over `ring` | 1.1 and 2 |
//! | `openssl` | OpenSSL, through kube-client; use it without the default features, because rustls takes precedence | 1.1 |
//! | none | no TLS: servers with `https` URLs are refused | 1.1 and 2 |
//!
//! rustls uses the provider that the program has installed as the default of the process, whatever the features say.
//! Install it before you build the first factory. If no provider is installed by then, the factory installs that of the
//! feature: rustls would panic if the program's dependencies contain more than one.

mod credentials;
#[doc(hidden)]
pub mod dial;
mod gzip;
#[cfg(feature = "http2")]
mod http2;
mod kube;
mod layers;
mod plugin;
mod tls;

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, Stream, StreamExt, TryStreamExt};

pub(crate) use gzip::Inflated;
pub use kube::{ConnectionOptions, KubeTransport};
pub use layers::ClientService;
pub(crate) use layers::Layers;
pub use plugin::PluginError;
pub use tls::ensure_tls_provider;

/// The media type of Kubernetes' protobuf.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Carries requests to one server: lists and watches, and the other requests of a factory (`/version`, `/openapi/v3`,
/// discovery, single objects).
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use informer::SharedInformerFactory;
/// use informer::crates::futures_core::future::BoxFuture;
/// use informer::crates::http;
/// use informer::transport::{KubeTransport, Response, Transport, TransportError};
///
/// /// Counts the requests that it passes on.
/// struct Counting {
///     to: KubeTransport,
///     requests: AtomicU64,
/// }
///
/// impl Transport for Counting {
///     fn send(&self, request: http::Request<Vec<u8>>) -> BoxFuture<'static, Result<Response, TransportError>> {
///         self.requests.fetch_add(1, Ordering::Relaxed);
///         self.to.send(request)
///     }
///
///     fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>> {
///         self.to.refresh_credentials()
///     }
/// }
///
/// # fn example(config: informer::kube::Config) -> Result<(), Box<dyn std::error::Error>> {
/// let transport = Counting { to: KubeTransport::new(config)?, requests: AtomicU64::new(0) };
/// let factory = SharedInformerFactory::builder_with_transport(transport).build()?;
/// # Ok(())
/// # }
/// ```
pub trait Transport: Send + Sync + 'static {
    /// Sends a request and resolves with the head of the response, also if its status is an error.
    ///
    /// Dropping the future or the body cancels the request.
    fn send(&self, request: http::Request<Vec<u8>>) -> BoxFuture<'static, Result<Response, TransportError>>;

    /// Refreshes the credentials after a 401.
    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>>;
}

/// The head of a response, and its body as a stream.
pub struct Response {
    /// Status and headers.
    pub head: http::response::Parts,
    /// The body's bytes, cut anywhere, as they were sent: not decompressed.
    pub body: BoxStream<'static, Result<Bytes, TransportError>>,
}

/// A request without a response, or a response that broke off.
#[derive(Debug, thiserror::Error)]
#[error("{context}")]
pub struct TransportError {
    context: String,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl TransportError {
    /// An error with the operation and the reason.
    pub fn new(
        context: impl Into<String>,
        source: impl Into<Option<Box<dyn std::error::Error + Send + Sync>>>,
    ) -> Self {
        Self { context: context.into(), source: source.into() }
    }

    /// The credential plugin that failed, if its failure kept the request from being sent.
    pub fn plugin(&self) -> Option<&PluginError> {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            if let Some(plugin) = error.downcast_ref() {
                return Some(plugin);
            }
            cause = error.source();
        }
        None
    }
}

impl Response {
    /// Reports the size of each chunk of the body.
    pub(crate) fn inspect_bytes(self, mut seen: impl FnMut(usize) + Send + 'static) -> Self {
        let body = self.body.inspect_ok(move |bytes| seen(bytes.len()));
        Self { head: self.head, body: body.boxed() }
    }

    /// Whether the body is protobuf, according to its headers.
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

    /// The whole body, decompressed. A longer one than `limit`, in bytes, is an error.
    pub(crate) async fn collect(self, limit: usize) -> Result<Vec<u8>, TransportError> {
        let mut content = self.into_content();
        let mut body = Vec::new();
        while let Some(chunk) = content.next().await {
            let chunk = chunk?;
            if body.len() + chunk.len() > limit {
                return Err(TransportError::new("the answer is too long", None));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("status", &self.head.status).finish_non_exhaustive()
    }
}
