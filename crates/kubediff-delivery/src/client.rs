//! The HTTP client of sinks: what all of them have in common.

mod failure;
pub(crate) mod tls;

use std::time::{Duration, SystemTime};

use http::HeaderValue;
use http::header::RETRY_AFTER;
use reqwest::{Client, RequestBuilder, Response, Url, redirect};

use crate::answer::Answer;

/// A sink that cannot be set up. No message contains an address or a token: they are secrets.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The address is no URL, or has another scheme.
    #[error("the address of the sink is no URL that begins with https:// or http://")]
    Url,
    /// A header has a name or a value that HTTP does not allow.
    #[error("the sink's header {name:?} is not allowed in HTTP")]
    Header {
        /// Its name.
        name: String,
    },
    /// The address of a NATS server is none.
    #[error("the servers of the sink are addresses of NATS: nats://HOST:PORT or tls://HOST:PORT")]
    Server,
    /// The credentials of NATS are none.
    #[error("these are no credentials of NATS, as `nsc generate creds` writes them")]
    Credentials,
    /// The certificates cannot be read.
    #[error("the sink's certificates are not PEM")]
    Certificates,
    /// TLS cannot be set up.
    #[error("TLS cannot be set up for the sink")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// How long a connection waits for the next message.
const IDLE: Duration = Duration::from_secs(20);

/// A client that follows no redirect: they would carry credentials to another host.
pub(crate) fn client(timeout: Duration, ca: Option<&[u8]>) -> Result<Client, SinkError> {
    let mut tls = tls::config(ca)?;
    // A sink sends one message at a time.
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Client::builder()
        .user_agent(concat!("kubediff/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .timeout(timeout)
        // Servers and load balancers close what idles for longer, and a message that meets their close is lost on the way.
        .pool_idle_timeout(IDLE)
        .tls_backend_preconfigured(tls)
        .build()
        .map_err(|error| SinkError::Tls(error.without_url().into()))
}

/// Whether a sink can have this address.
pub fn is_url(text: &str) -> bool {
    url(text).is_ok()
}

pub(crate) fn url(text: &str) -> Result<Url, SinkError> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or(SinkError::Url)
}

/// Sends a request. Without an answer, returns why.
pub(crate) async fn send(request: RequestBuilder) -> Result<Response, Answer> {
    request.send().await.map_err(unavailable)
}

/// The body of an answer did not come.
pub(crate) fn unavailable(error: reqwest::Error) -> Answer {
    Answer::Unavailable { reason: failure::in_words(error) }
}

/// The meaning of an answer's status.
pub(crate) fn judge(response: &Response) -> Answer {
    let wait = response.headers().get(RETRY_AFTER).and_then(retry_after);
    Answer::of_http(response.status().as_u16(), wait)
}

/// Seconds, or a date ([RFC 9110, 10.2.3](https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3)).
fn retry_after(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}
