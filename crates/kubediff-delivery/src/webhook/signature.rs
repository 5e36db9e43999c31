//! Signatures after the [Standard Webhooks specification](https://github.com/standard-webhooks/standard-webhooks): HMAC-SHA256 of id,
//! time and body, so that a receiver knows who sent a request, and that nobody repeats an old one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;

pub(super) const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// How secrets are written.
const PREFIX: &str = "whsec_";

/// A key that signs requests.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

/// A secret that is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a webhook's signing secret is {PREFIX} and 24 to 64 bytes in base64, for example {PREFIX} and the output of `openssl rand -base64 32`"
)]
pub struct KeyError;

impl Key {
    /// Reads a secret, `whsec_` and 24 to 64 bytes in base64, as the specification has it.
    ///
    /// # Errors
    ///
    /// If it is something else.
    pub fn read(secret: &str) -> Result<Self, KeyError> {
        let encoded = secret.trim().strip_prefix(PREFIX).ok_or(KeyError)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| KeyError)?;
        if !(24..=64).contains(&bytes.len()) {
            return Err(KeyError);
        }
        Hmac::new_from_slice(&bytes).map(Self).map_err(|_| KeyError)
    }

    pub(super) fn sign(&self, headers: &mut HeaderMap, id: &str, seconds: i64, body: &[u8]) {
        let mut mac = self.0.clone();
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        for (name, value) in
            [(ID, id.to_owned()), (TIMESTAMP, seconds.to_string()), (SIGNATURE, format!("v1,{signature}"))]
        {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}
