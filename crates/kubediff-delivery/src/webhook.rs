//! Webhooks: an HTTP request for each batch, with a signature if there is a key for it.

mod body;
mod otlp;
mod signature;

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use jiff::Timestamp;
use reqwest::{Client, Url};

use crate::answer::Answer;
use crate::client::{self, SinkError};
use crate::drive::Sink;
use crate::record::Parcel;

pub use body::Form;
pub use signature::{Key, KeyError};

/// A webhook: a request for each batch.
///
/// The answer's status decides ([`Answer::of_http`]); its body is not read, except in the form [`Form::Otlp`]. Redirects are not followed. The request names itself by the
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
    /// The format of the body.
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

impl Webhook {
    /// Sets a webhook up. Nothing is sent.
    ///
    /// # Errors
    ///
    /// If the address, a header or a certificate is wrong.
    pub fn new(url: &str, options: WebhookOptions) -> Result<Self, SinkError> {
        let url = client::url(url)?;
        let mut headers = HeaderMap::new();
        for (name, value) in options.headers {
            let parsed = HeaderName::try_from(&name).ok().zip(HeaderValue::try_from(value).ok());
            let Some((name, mut value)) = parsed else { return Err(SinkError::Header { name }) };
            // Often a token.
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let client = client::client(options.timeout, options.ca.as_deref())?;
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
        match client::send(request.headers(headers).body(body)).await {
            Ok(response) => match (client::judge(&response), &self.form) {
                (Answer::Accepted, Form::Otlp { .. }) => otlp::judge(response, parcel.records.len()).await,
                (answer, _) => answer,
            },
            Err(answer) => answer,
        }
    }
}
