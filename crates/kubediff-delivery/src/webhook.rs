//! Webhooks: an HTTP request for each batch, with a signature if there is a key for it.

mod body;
mod failure;
mod signature;
mod tls;

use std::time::{Duration, SystemTime};

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use jiff::Timestamp;
use reqwest::redirect;
use reqwest::{Client, Url};

use crate::answer::Answer;
use crate::drive::Sink;
use crate::record::Parcel;

pub use body::Form;
pub use signature::{Key, KeyError};

/// A webhook: a request for each batch.
///
/// The answer's status decides ([`Answer::of_http`]); its body is not read. Redirects are not followed. The request names itself by the
/// header `webhook-id`, which is the same whenever the same records are sent again.
#[derive(Debug)]
pub struct Webhook {
    client: Client,
    url: Url,
    method: Method,
    headers: HeaderMap,
    form: Form,
    key: Option<Key>,
}

/// How a webhook is called.
#[derive(Debug, Clone)]
pub struct WebhookOptions {
    /// `POST` by default.
    pub method: Method,
    /// Further headers. They replace those that the webhook sets itself.
    pub headers: Vec<(String, String)>,
    /// What the body is.
    pub form: Form,
    /// The key that signs requests. None by default.
    pub key: Option<Key>,
    /// The limit of a whole request; 10 s by default.
    pub timeout: Duration,
    /// Certificates to trust besides those of the machine, in PEM.
    pub ca: Option<Vec<u8>>,
}

impl Default for WebhookOptions {
    fn default() -> Self {
        Self {
            method: Method::POST,
            headers: Vec::new(),
            form: Form::default(),
            key: None,
            timeout: Duration::from_secs(10),
            ca: None,
        }
    }
}

/// A webhook that cannot be set up. No message contains the address: it may be a secret.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The address is no URL, or has another scheme.
    #[error("the address of the webhook is no URL that begins with https:// or http://")]
    Url,
    /// A header has a name or a value that HTTP does not allow.
    #[error("the header {name:?} of the webhook is not allowed in HTTP")]
    Header {
        /// Its name.
        name: String,
    },
    /// The certificates cannot be read.
    #[error("the webhook's certificates are not PEM")]
    Certificates,
    /// TLS cannot be set up.
    #[error("TLS cannot be set up for the webhook")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Webhook {
    /// Sets a webhook up. Nothing is sent.
    ///
    /// # Errors
    ///
    /// If the address, a header or a certificate is wrong.
    pub fn new(url: &str, options: WebhookOptions) -> Result<Self, WebhookError> {
        let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or(WebhookError::Url)?;
        let mut headers = HeaderMap::new();
        for (name, value) in options.headers {
            let parsed = HeaderName::try_from(&name).ok().zip(HeaderValue::try_from(value).ok());
            let Some((name, mut value)) = parsed else { return Err(WebhookError::Header { name }) };
            // Often a token.
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let client = Client::builder()
            .user_agent(concat!("kubediff/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .timeout(options.timeout)
            .tls_backend_preconfigured(tls::config(options.ca.as_deref())?)
            .build()
            .map_err(|error| WebhookError::Tls(error.without_url().into()))?;
        Ok(Self { client, url, method: options.method, headers, form: options.form, key: options.key })
    }
}

impl Sink for Webhook {
    async fn send(&mut self, parcel: Parcel<'_>) -> Answer {
        let (content_type, body) = self.form.render(&parcel);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if let Some(key) = &self.key {
            key.sign(&mut headers, &parcel.id(), Timestamp::now().as_second(), &body);
        } else if let Ok(id) = HeaderValue::try_from(parcel.id()) {
            headers.insert(signature::ID, id);
        }
        headers.extend(self.headers.clone());
        let request = self.client.request(self.method.clone(), self.url.clone());
        match request.headers(headers).body(body).send().await {
            Ok(answer) => {
                let wait = answer.headers().get(RETRY_AFTER).and_then(retry_after);
                Answer::of_http(answer.status().as_u16(), wait)
            }
            Err(error) => Answer::Unavailable { reason: failure::in_words(error) },
        }
    }
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
