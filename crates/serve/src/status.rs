//! Refusals, in the words of the real server.

use http::StatusCode;
use serde_json::{Value, json};

use crate::json::without_empty;

/// A refusal: a `Status` in the API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// The HTTP status code.
    pub code: StatusCode,
    /// The reason in one word.
    pub reason: Reason,
    /// The message for people.
    pub message: String,
    /// The object that it is about: group and plural name or kind.
    pub about: Option<About>,
    /// The details.
    pub causes: Vec<StatusCause>,
    /// Seconds after which to try again.
    pub retry_after: Option<u32>,
}

/// The object that a refusal is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The group, empty for the core.
    pub group: String,
    /// The resource's plural name; for an invalid object its kind.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// The uid of the object.
    pub uid: String,
}

/// One reason of a refusal (`metav1.StatusCause`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusCause {
    /// `FieldValueRequired`, `FieldManagerConflict`, `ResourceVersionTooLarge` ...
    pub reason: String,
    /// The message for people.
    pub message: String,
    /// `spec.replicas`, or empty.
    pub field: String,
}

/// The reason of a refusal (`metav1.StatusReason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the API's own words")]
pub enum Reason {
    Unknown,
    Unauthorized,
    Forbidden,
    NotFound,
    AlreadyExists,
    Conflict,
    Gone,
    Invalid,
    Timeout,
    TooManyRequests,
    BadRequest,
    MethodNotAllowed,
    NotAcceptable,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    InternalError,
    Expired,
    ServiceUnavailable,
    StorageReadError,
}

impl Reason {
    /// The reason as it stands in a `Status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Gone => "Gone",
            Self::Invalid => "Invalid",
            Self::Timeout => "Timeout",
            Self::TooManyRequests => "TooManyRequests",
            Self::BadRequest => "BadRequest",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::InternalError => "InternalError",
            Self::Expired => "Expired",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::StorageReadError => "StorageReadError",
        }
    }

    /// The status code that goes with it.
    pub fn code(self) -> StatusCode {
        match self {
            Self::Unknown | Self::InternalError | Self::StorageReadError => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::AlreadyExists | Self::Conflict => StatusCode::CONFLICT,
            Self::Gone | Self::Expired => StatusCode::GONE,
            Self::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
            Self::RequestEntityTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::ServiceUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl Status {
    /// A refusal with the status code of its reason, and nothing else.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            code: reason.code(),
            reason,
            message: message.into(),
            about: None,
            causes: Vec::new(),
            retry_after: None,
        }
    }

    /// Adds the object that it is about.
    #[must_use]
    pub fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        self.about =
            Some(About { group: group.into(), kind: kind.into(), name: name.into(), uid: String::new() });
        self
    }

    /// Adds one thing that is wrong.
    #[must_use]
    pub fn cause(mut self, reason: &str, message: impl Into<String>, field: &str) -> Self {
        self.causes.push(StatusCause { reason: reason.into(), message: message.into(), field: field.into() });
        self
    }

    /// Adds a time after which to try again.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// The object does not exist.
    pub fn not_found(group: &str, plural: &str, name: &str) -> Self {
        Self::new(Reason::NotFound, format!("{} {name:?} not found", qualified(group, plural)))
            .about(group, plural, name)
    }

    /// The history no longer has that version.
    pub fn expired(asked: u64, oldest: u64) -> Self {
        Self::new(Reason::Expired, format!("too old resource version: {asked} ({oldest})"))
    }

    /// The server has not reached that version yet.
    pub fn too_large(asked: u64, newest: u64) -> Self {
        Self::new(Reason::Timeout, format!("Timeout: Too large resource version: {asked}, current: {newest}"))
            .cause("ResourceVersionTooLarge", "Too large resource version", "")
            .retry_after(1)
    }

    /// The request itself is wrong.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// The JSON of the API.
    pub fn to_json(&self) -> Value {
        let About { group, kind, name, uid } = self.about.clone().unwrap_or_default();
        let causes: Vec<_> = self.causes.iter().map(StatusCause::to_json).collect();
        let details = without_empty(json!({
            "name": name, "group": group, "kind": kind, "uid": uid, "causes": causes,
            "retryAfterSeconds": self.retry_after,
        }));
        let has_details = self.about.is_some() || details != json!({});
        let mut status = without_empty(json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "reason": self.reason.as_str(), "details": has_details.then_some(details),
            "code": self.code.as_u16(),
        }));
        status["message"] = self.message.as_str().into();
        status
    }
}

impl StatusCause {
    fn to_json(&self) -> Value {
        without_empty(json!({ "reason": self.reason, "message": self.message, "field": self.field }))
    }
}

fn qualified(group: &str, plural: &str) -> String {
    if group.is_empty() { plural.to_string() } else { format!("{plural}.{group}") }
}
