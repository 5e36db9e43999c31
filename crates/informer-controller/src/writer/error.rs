//! A write that failed.

use std::fmt;
use std::time::Duration;

use informer::kube::client;

use super::attempt::Attempt;

/// A write that the server refused, or did not answer. The reconciliation returns it with `?`, and is tried again.
pub struct WriteError {
    what: String,
    why: Why,
}

/// The reasons of refusals whose messages name objects and do not quote them.
const TELLABLE: &[&str] = &[
    "AlreadyExists",
    "Conflict",
    "Expired",
    "Forbidden",
    "MethodNotAllowed",
    "NotFound",
    "ServiceUnavailable",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
];

/// A server that does not say when to come again says this.
const NOT_NOW: Duration = Duration::from_secs(5);

/// The reason of the causes of a conflict between field managers.
const TAKEN: &str = "FieldManagerConflict";

enum Why {
    /// The server's answer, or none.
    Request(client::Error),
    Unanswered(Duration),
    Unnamed,
    NoObject,
    /// This field has no name in it.
    NoName(&'static str),
    Ended,
    /// A test of a JSON patch failed.
    Changed,
}

impl Attempt<'_> {
    pub(super) fn failed(&self, error: client::Error) -> WriteError {
        self.error(Why::Request(error))
    }

    pub(super) fn unanswered(&self, limit: Duration) -> WriteError {
        self.error(Why::Unanswered(limit))
    }

    pub(super) fn unnamed(&self) -> WriteError {
        self.error(Why::Unnamed)
    }

    pub(super) fn changed(&self) -> WriteError {
        self.error(Why::Changed)
    }

    pub(super) fn no_object(&self) -> WriteError {
        self.error(Why::NoObject)
    }

    pub(super) fn no_name(&self, field: &'static str) -> WriteError {
        self.error(Why::NoName(field))
    }

    pub(super) fn ended(&self) -> WriteError {
        self.error(Why::Ended)
    }

    fn error(&self, why: Why) -> WriteError {
        let Attempt { verb, resource, namespace, name, .. } = self;
        let namespace = namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let what = format!("cannot {verb} {resource} {namespace}{}", name.unwrap_or_default());
        WriteError { what: what.trim_end().to_owned(), why }
    }
}

impl WriteError {
    /// Whether somebody else has written the object, or created it anew, since this reconciliation read it (409).
    pub fn is_conflict(&self) -> bool {
        let is_refused = self.reason() == Some("Conflict") || self.is_of_another_incarnation();
        is_refused || matches!(self.why, Why::Changed)
    }

    /// Names this controller's field manager beside the other one, which the server names.
    pub(super) fn between_managers(mut self, ours: &str) -> Self {
        if let Why::Request(client::Error::Api(status)) = &self.why
            && status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.reason == TAKEN)
        {
            self.what.push_str(&format!(" as {ours:?}"));
        }
        self
    }

    /// Whether an object of that name exists already (409).
    pub fn is_already_exists(&self) -> bool {
        self.reason() == Some("AlreadyExists")
    }

    /// Whether the object, or its resource, does not exist (404).
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Whether permission is missing (403).
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// Whether the object is not valid (400, 422): the same request will not succeed later.
    pub fn is_invalid(&self) -> bool {
        let is_refused = matches!(self.code(), Some(400 | 422)) && !self.is_of_another_incarnation();
        is_refused || matches!(self.why, Why::Unnamed | Why::NoObject | Why::NoName(_))
    }

    /// The server's answer to a patch with another uid: `metadata.uid` cannot be changed.
    fn is_of_another_incarnation(&self) -> bool {
        let Why::Request(client::Error::Api(status)) = &self.why else { return false };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        status.code == 422 && causes.into_iter().any(|cause| cause.field == "metadata.uid")
    }

    /// The server's answer to a JSON patch that does not fit the object: it blames no field.
    pub(super) fn is_misfit(&self) -> bool {
        let Why::Request(client::Error::Api(status)) = &self.why else { return false };
        status.code == 422 && status.details.iter().all(|details| details.causes.is_empty())
    }

    /// After how long the server may accept the same write (429): it has no capacity, or an eviction would violate a disruption budget.
    /// Then nothing was written. 5 s if the server does not say, as long as `kubectl drain` waits. `None` for other errors.
    ///
    /// A reconciliation that ends with this error, or with one whose source it is, runs again after this time; it counts as no failure.
    pub fn retry_after(&self) -> Option<Duration> {
        let Why::Request(client::Error::Api(status)) = &self.why else { return None };
        let asked = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        let wait = if asked == 0 { NOT_NOW } else { Duration::from_secs(asked.into()) };
        (status.code == 429).then_some(wait)
    }

    /// Whether the write may have been carried out all the same: the server did not answer, or failed.
    pub fn is_uncertain(&self) -> bool {
        match &self.why {
            Why::Request(client::Error::Api(status)) => status.code >= 500,
            Why::Request(client::Error::BuildRequest(_)) => false,
            Why::Request(_) | Why::Unanswered(_) => true,
            _ => false,
        }
    }

    /// Whether the reconciliation had ended before. A task that outlives its reconciliation cannot write with its context.
    pub fn is_ended(&self) -> bool {
        matches!(self.why, Why::Ended)
    }

    /// The server's status code, if it answered.
    pub fn code(&self) -> Option<u16> {
        match &self.why {
            Why::Request(client::Error::Api(status)) => Some(status.code),
            _ => None,
        }
    }

    fn reason(&self) -> Option<&str> {
        match &self.why {
            Why::Request(client::Error::Api(status)) => Some(&status.reason),
            _ => None,
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.why {
            // Its text is in this error's.
            Why::Request(client::Error::Api(_)) => None,
            // It quotes what it cannot read.
            Why::Request(client::Error::SerdeError(_)) => None,
            Why::Request(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.what)?;
        match &self.why {
            Why::Request(client::Error::Api(status)) if status.reason == "Invalid" => {
                // The server's message quotes the object's fields, which may be a Secret's.
                let causes = status.details.iter().flat_map(|details| &details.causes);
                let fields: Vec<_> = causes.map(|cause| cause.field.as_str()).collect();
                write!(f, "the server finds these fields invalid: {}", fields.join(", "))
            }
            // Other messages may quote the object too.
            Why::Request(client::Error::Api(status)) if TELLABLE.contains(&status.reason.as_str()) => {
                write!(f, "{} ({} {})", status.message, status.code, status.reason)
            }
            Why::Request(client::Error::Api(status)) => {
                write!(f, "the server answers {} {}", status.code, status.reason)
            }
            Why::Request(client::Error::SerdeError(error)) => {
                write!(f, "JSON that does not fit its type, at column {}", error.column())
            }
            Why::Request(_) => write!(f, "the request failed"),
            Why::Unanswered(limit) => write!(f, "no answer within {} s", limit.as_secs_f64()),
            Why::Unnamed => write!(f, "the object has no metadata.name"),
            Why::NoObject => write!(f, "the patch is not a JSON object"),
            Why::NoName(field) => write!(f, "{field} is not a name"),
            Why::Changed => write!(f, "the object has changed since"),
            Why::Ended => write!(f, "the reconciliation has ended"),
        }
    }
}

impl fmt::Debug for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
