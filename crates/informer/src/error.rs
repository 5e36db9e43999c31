//! Errors of calls.

use std::fmt;
use std::sync::Arc;

use informer_core::DecodeError;

use crate::options::resource::ResourceType;
use crate::transport::TransportError;

/// The error of a call. A failure while an informer runs is not the error of a call: see its status and its reports.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct Error(Arc<Kind>);

#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error("the informer of {0} has stopped; ask a factory for a new one")]
    Stopped(ResourceType),
    #[error("the informer of {0} was started, or its cache loaded; set options before that")]
    AlreadyStarted(ResourceType),
    #[error("invalid {what} `{name}`: {reason}")]
    Invalid { what: &'static str, name: String, reason: String },
    #[error("an index named `{0}` exists already; choose another name, or look it up")]
    IndexExists(String),
    #[error(transparent)]
    Decode(DecodeError),
    #[error("the server cannot be reached with this configuration")]
    Transport(#[from] TransportError),
    #[error("failed to spawn the connection thread")]
    Thread(#[source] std::io::Error),
    #[error("this must be called within a tokio runtime")]
    NoRuntime,
}

impl Error {
    /// Whether the informer has stopped.
    pub fn is_stopped(&self) -> bool {
        matches!(*self.0, Kind::Stopped(_))
    }

    /// Whether the call is possible only before the start.
    pub fn is_already_started(&self) -> bool {
        matches!(*self.0, Kind::AlreadyStarted(_))
    }

    /// Whether the name of the index is taken.
    pub fn is_index_exists(&self) -> bool {
        matches!(*self.0, Kind::IndexExists(_))
    }

    /// Whether an object does not decode as the requested type.
    pub fn is_decode(&self) -> bool {
        matches!(*self.0, Kind::Decode(_))
    }

    pub(crate) fn stopped(resource: &ResourceType) -> Self {
        Kind::Stopped(resource.clone()).into()
    }

    pub(crate) fn already_started(resource: &ResourceType) -> Self {
        Kind::AlreadyStarted(resource.clone()).into()
    }

    pub(crate) fn invalid(what: &'static str, name: impl fmt::Display, reason: impl fmt::Display) -> Self {
        Kind::Invalid { what, name: name.to_string(), reason: reason.to_string() }.into()
    }

    pub(crate) fn index_exists(name: &str) -> Self {
        Kind::IndexExists(name.to_owned()).into()
    }

    pub(crate) fn thread(error: std::io::Error) -> Self {
        Kind::Thread(error).into()
    }

    pub(crate) fn no_runtime() -> Self {
        Kind::NoRuntime.into()
    }
}

/// Formats an error and its causes in one line. Text that a wrapping error repeats appears once.
///
/// ```
/// let cause = std::io::Error::other("no route to host");
/// let error = informer::transport::TransportError::new("the request failed", Some(cause.into()));
/// assert_eq!(informer::error_chain(&error), "the request failed: no route to host");
/// ```
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        source = error.source();
    }
    text
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self(Arc::new(kind))
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        Kind::Decode(error).into()
    }
}

impl From<TransportError> for Error {
    fn from(error: TransportError) -> Self {
        Kind::Transport(error).into()
    }
}
