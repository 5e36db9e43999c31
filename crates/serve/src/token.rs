//! Continue tokens: where the next page of a list begins, and which state of the collection it shows.
//!
//! They look like the real server's, so that a client that looks inside one, which it must not, finds the usual
//! content.

use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use base64::{DecodeError, Engine as _};
use serde_json::{Value, json};

use crate::Status;

const VERSION: &str = "meta.k8s.io/v1";

/// As lenient as the real server's decoder.
const BASE64: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// Where a list continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// The state to show; `None` for the newest.
    pub(crate) revision: Option<u64>,
    /// Namespace (empty if the list has only one) and name of the last object of the previous page.
    pub(crate) after: (String, String),
}

impl Token {
    pub(crate) fn encode(&self) -> String {
        let revision = self.revision.map_or(json!(-1), Value::from);
        let (namespace, name) = &self.after;
        let separator = if namespace.is_empty() { "" } else { "/" };
        let start = json!(format!("/{namespace}{separator}{name}\0"));
        // Formatted by hand to fix the order of its members.
        BASE64.encode(format!(r#"{{"v":"{VERSION}","rv":{revision},"start":{start}}}"#))
    }

    /// Parses a token; `namespaces`: whether the list spans several namespaces.
    pub(crate) fn decode(text: &str, namespaces: bool) -> Result<Self, Status> {
        let invalid = |why: String| {
            Status::bad_request(format!("invalid continue token: continue key is not valid{why}"))
        };
        let bytes = BASE64.decode(text).map_err(|error| {
            let at = match error {
                DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
                _ => text.len() / 4 * 4,
            };
            invalid(format!(": illegal base64 data at input byte {at}"))
        })?;
        let token: Value = serde_json::from_slice(&bytes)
            .map_err(|error| invalid(format!(": {}", why_no_json(&bytes, &error))))?;
        let version = token["v"].as_str().unwrap_or_default();
        if version != VERSION {
            return Err(invalid(format!(": server does not recognize this encoded version {version}")));
        }
        let revision = match token["rv"].as_i64() {
            None | Some(0) => {
                return Err(invalid(
                    ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)".to_string(),
                ));
            }
            Some(revision) => u64::try_from(revision).ok(),
        };
        let start = token["start"].as_str().unwrap_or_default();
        if start.is_empty() {
            return Err(invalid(": encoded start key empty (version meta.k8s.io/v1)".to_string()));
        }
        let key = start.strip_prefix('/').unwrap_or(start);
        let whole = key.split('/').all(|part| !matches!(part, "" | "." | ".."));
        let key = key.strip_suffix('\0').unwrap_or(key);
        let after = if namespaces { key.split_once('/') } else { Some(("", key)) };
        let (namespace, name) = after.filter(|_| whole).ok_or_else(|| invalid(format!(": {start}")))?;
        Ok(Self { revision, after: (namespace.to_string(), name.to_string()) })
    }
}

/// The real server's message for bytes that are no JSON; for bytes that do not even begin like JSON it has a special
/// one.
fn why_no_json(bytes: &[u8], error: &serde_json::Error) -> String {
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => "unexpected end of JSON input".to_string(),
        Some(b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => error.to_string(),
        Some(first) => format!("invalid character '{}' looking for beginning of value", shown(*first)),
    }
}

/// A byte, quoted as Go quotes a character.
fn shown(byte: u8) -> String {
    match byte {
        b'\'' => "\\'".to_string(),
        0..0x20 | 0x7f => format!("\\x{byte:02x}"),
        0x80..=0xa0 | 0xad => format!("\\u{byte:04x}"),
        byte => char::from(byte).to_string(),
    }
}
