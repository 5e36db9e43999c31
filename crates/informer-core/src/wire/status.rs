//! A server's `Status`: why it refuses a request.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

/// A failure as a Kubernetes API server describes it (`kind: Status`), from the body of a response or from an ERROR event.
///
/// ```
/// # mod informer { pub use informer_core::wire::ApiStatus; }
/// use informer::ApiStatus;
///
/// let status = ApiStatus::from_body(410, br#"{"kind":"Status","code":410,"reason":"Expired","message":"too old"}"#);
/// assert!(status.is_expired());
/// assert!(ApiStatus::from_body(404, b"<html>no such page</html>").is_not_found());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ApiStatus {
    /// The HTTP code.
    pub code: u16,
    /// The machine-readable reason, such as `Expired`.
    pub reason: String,
    /// The human-readable message; truncated to 1 KiB.
    pub message: String,
    /// How long the server asks to wait before the next attempt.
    pub retry_after: Option<Duration>,
    /// More precise causes.
    pub causes: Vec<StatusCause>,
}

/// One cause within an [`ApiStatus`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StatusCause {
    /// The machine-readable type, such as `FieldValueInvalid`.
    pub reason: String,
    /// The human-readable message; truncated to 1 KiB.
    pub message: String,
}

const MAX_TEXT: usize = 1024;
const MAX_CAUSES: usize = 16;

/// The known reasons. With one of these the HTTP code adds nothing (apimachinery, `knownReasons`).
const REASONS: [&str; 19] = [
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "StoreReadError",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
];

const TOO_LARGE_RESOURCE_VERSION: &str = "Too large resource version";

impl ApiStatus {
    /// Reads a Status in JSON or in protobuf. If the body is not a Status, only the HTTP code remains.
    pub fn from_body(http_code: u16, body: &[u8]) -> Self {
        match informer_protobuf::open(body) {
            Ok(envelope) => Self::from_protobuf(http_code, envelope.raw),
            Err(_) => Self::read(http_code, serde_json::from_slice(body).ok()),
        }
    }

    /// Like `from_body`, for a message without its envelope.
    pub(super) fn from_protobuf(http_code: u16, message: &[u8]) -> Self {
        let status = informer_protobuf::Kind::of("v1", "Status");
        Self::read(http_code, status.and_then(|kind| informer_protobuf::from_slice(kind, message).ok()))
    }

    fn read(http_code: u16, body: Option<Body>) -> Self {
        let Some(read) = body else {
            return Self { code: http_code, message: format!("HTTP status {http_code}"), ..Self::default() };
        };
        let details = read.details.unwrap_or_default();
        let causes = details.causes.unwrap_or_default().into_iter().take(MAX_CAUSES);
        Self {
            code: read
                .code
                .and_then(|code| u16::try_from(code).ok())
                .filter(|&code| code != 0)
                .unwrap_or(http_code),
            reason: bounded(read.reason),
            message: bounded(read.message),
            retry_after: details
                .retry_after_seconds
                .and_then(|seconds| u64::try_from(seconds).ok())
                .filter(|&seconds| seconds != 0)
                .map(Duration::from_secs),
            causes: causes
                .map(|cause| StatusCause { reason: bounded(cause.reason), message: bounded(cause.message) })
                .collect(),
        }
    }

    /// Whether the requested version, or page, is no longer available: list again.
    pub fn is_expired(&self) -> bool {
        self.is("Expired", 410) || self.is("Gone", 410)
    }

    /// Whether the server has not reached the requested version yet, in every form in which servers have reported that.
    pub fn is_too_large_resource_version(&self) -> bool {
        self.causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
            || self.is("Timeout", 504)
                // Kubernetes 1.17.0 to 1.18.5, and before 1.17.
                && (self.causes.iter().any(|cause| cause.message == TOO_LARGE_RESOURCE_VERSION)
                    || self.message.contains(TOO_LARGE_RESOURCE_VERSION))
    }

    /// Whether the server asks the client to wait.
    pub fn is_too_many_requests(&self) -> bool {
        // The code counts whatever the reason is, as in client-go.
        self.reason == "TooManyRequests" || self.code == 429
    }

    /// Whether the request failed inside the server.
    pub fn is_internal_error(&self) -> bool {
        self.is("InternalError", 500)
    }

    /// Whether the server did not accept the credentials.
    pub fn is_unauthorized(&self) -> bool {
        self.is("Unauthorized", 401)
    }

    /// Whether the client has no permission for the request.
    pub fn is_forbidden(&self) -> bool {
        self.is("Forbidden", 403)
    }

    /// Whether the object or the resource does not exist.
    pub fn is_not_found(&self) -> bool {
        self.is("NotFound", 404)
    }

    /// Whether the server understood the request but rejects its content, for example an option that it does not support.
    pub fn is_invalid(&self) -> bool {
        self.is("Invalid", 422)
    }

    /// Whether the server did not understand the request.
    pub fn is_bad_request(&self) -> bool {
        self.is("BadRequest", 400)
    }

    /// Whether the server will never accept the request as it is: 400, 405, 406, 415, 422.
    pub fn is_unsupported(&self) -> bool {
        self.is_bad_request()
            || self.is_invalid()
            || self.is("MethodNotAllowed", 405)
            || self.is("NotAcceptable", 406)
            || self.is("UnsupportedMediaType", 415)
    }

    fn is(&self, reason: &str, code: u16) -> bool {
        self.reason == reason || self.code == code && !REASONS.contains(&self.reason.as_str())
    }
}

impl fmt::Display for ApiStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, reason, message, .. } = self;
        match (reason.as_str(), message.as_str()) {
            ("", message) => write!(f, "{code}: {message}"),
            (reason, "") => write!(f, "{code} {reason}"),
            (reason, message) => write!(f, "{code} {reason}: {message}"),
        }
    }
}

#[derive(Deserialize)]
struct Body {
    code: Option<i64>,
    reason: Option<String>,
    message: Option<String>,
    details: Option<Details>,
}

#[derive(Deserialize, Default)]
struct Details {
    #[serde(rename = "retryAfterSeconds")]
    retry_after_seconds: Option<i64>,
    causes: Option<Vec<RawCause>>,
}

#[derive(Deserialize)]
struct RawCause {
    reason: Option<String>,
    message: Option<String>,
}

fn bounded(text: Option<String>) -> String {
    let mut text = text.unwrap_or_default();
    if text.len() > MAX_TEXT {
        let end = (0..=MAX_TEXT).rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(json: &str) -> ApiStatus {
        ApiStatus::from_body(500, json.as_bytes())
    }

    #[test]
    fn l5_too_large_resource_version_in_each_historic_form() {
        for json in [
            r#"{"code":504,"reason":"Timeout","message":"Timeout: Too large resource version: 9, current: 5",
                "details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1}}"#,
            r#"{"code":504,"reason":"Timeout","details":{"causes":[{"message":"Too large resource version"}],"retryAfterSeconds":1}}"#,
            r#"{"code":504,"reason":"Timeout","message":"Too large resource version: 9, current: 5","details":{"retryAfterSeconds":1}}"#,
        ] {
            let status = status(json);
            assert!(status.is_too_large_resource_version(), "{json}");
            assert_eq!(status.retry_after, Some(Duration::from_secs(1)), "{json}");
            assert!(!status.is_expired(), "{json}");
        }
        for json in [
            r#"{"code":504,"reason":"Timeout","message":"request did not complete"}"#,
            r#"{"code":500,"reason":"InternalError","message":"Too large resource version"}"#,
            "{}",
        ] {
            assert!(!status(json).is_too_large_resource_version(), "{json}");
        }
    }

    #[test]
    fn the_code_counts_where_the_reason_is_unknown() {
        type Predicate = fn(&ApiStatus) -> bool;
        let predicates: [(u16, &str, Predicate); 10] = [
            (400, "BadRequest", ApiStatus::is_bad_request),
            (401, "Unauthorized", ApiStatus::is_unauthorized),
            (403, "Forbidden", ApiStatus::is_forbidden),
            (404, "NotFound", ApiStatus::is_not_found),
            (410, "Expired", ApiStatus::is_expired),
            (410, "Gone", ApiStatus::is_expired),
            (422, "Invalid", ApiStatus::is_invalid),
            (429, "TooManyRequests", ApiStatus::is_too_many_requests),
            (500, "InternalError", ApiStatus::is_internal_error),
            (500, "", ApiStatus::is_internal_error),
        ];
        for (code, reason, predicate) in predicates {
            assert!(predicate(&ApiStatus::from_body(code, b"<html>")), "{code}");
            assert!(predicate(&ApiStatus { code, reason: "Novel".into(), ..ApiStatus::default() }), "{code}");
            assert!(
                predicate(&ApiStatus { code, reason: reason.into(), ..ApiStatus::default() }),
                "{reason}"
            );
            let other = ApiStatus { code, reason: "Conflict".into(), ..ApiStatus::default() };
            assert_eq!(predicate(&other), code == 429, "{code}");
        }
        assert!(!status(r#"{"code":500,"reason":"StoreReadError"}"#).is_internal_error());
    }

    #[test]
    fn what_is_missing_or_garbled_is_made_good() {
        for body in ["", "null", "[]", r#"{"code":"x"}"#, "{", "\u{1}"] {
            let status = ApiStatus::from_body(503, body.as_bytes());
            assert_eq!((status.code, status.to_string().as_str()), (503, "503: HTTP status 503"), "{body}");
        }
        let sparse =
            status(r#"{"reason":"Expired","code":70000,"details":{"causes":null,"retryAfterSeconds":-1}}"#);
        assert_eq!((sparse.code, sparse.retry_after), (500, None));
        assert_eq!(sparse.to_string(), "500 Expired");
    }

    #[test]
    fn texts_are_bounded() {
        let status = status(&format!(r#"{{"message":"{}"}}"#, "→".repeat(5_000)));
        assert!(status.message.len() <= MAX_TEXT + '…'.len_utf8());
        assert!(status.message.ends_with("→…"));
        let causes = format!("{}{{}}", "{},".repeat(99));
        assert_eq!(
            ApiStatus::from_body(422, format!(r#"{{"details":{{"causes":[{causes}]}}}}"#).as_bytes())
                .causes
                .len(),
            MAX_CAUSES
        );
    }
}
