//! Requests without an answer: as a page for people, and as RFC 9457 says for programs.

use http::StatusCode;
use serde::Serialize;

use crate::ask::AskError;

/// A request without an answer.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Problem {
    #[serde(serialize_with = "code")]
    pub(super) status: StatusCode,
    pub(super) title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) detail: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) hint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parameter: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn code<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

impl Problem {
    pub(super) fn new(status: StatusCode, title: impl Into<String>) -> Self {
        Self { status, title: title.into(), detail: String::new(), hint: String::new(), parameter: None }
    }

    /// The history has no such thing.
    pub(super) fn missing(title: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..Self::new(StatusCode::NOT_FOUND, title) }
    }

    /// The answer is not there in time.
    pub(super) fn late() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "The answer takes too long")
            .hint("Choose a shorter time, a kind or a namespace.")
    }

    /// A parameter has no meaning.
    pub(super) fn wrong(parameter: &str, detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            parameter: Some(parameter.to_owned()),
            ..Self::new(StatusCode::BAD_REQUEST, format!("The parameter `{parameter}` cannot be understood"))
        }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    /// The same about this parameter, if it is about the question.
    pub(super) fn of(parameter: &str) -> impl Fn(AskError) -> Self {
        move |error| match error.is_of_the_question() {
            true => Self::wrong(parameter, error.to_string()),
            false => error.into(),
        }
    }
}

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        match error {
            AskError::History(kubediff_history::Error::Late) => Self::late(),
            AskError::Nothing(text) => Self::missing("The history has no such thing", text),
            error if error.is_of_the_question() => Self {
                detail: error.to_string(),
                ..Self::new(StatusCode::BAD_REQUEST, "The question cannot be understood")
            },
            error => Self {
                detail: informer::error_chain(&error),
                hint: "`kubediff history check` reads the whole file and names what is damaged.".to_owned(),
                ..Self::new(StatusCode::INTERNAL_SERVER_ERROR, "The history cannot be read")
            },
        }
    }
}

impl From<kubediff_history::Error> for Problem {
    fn from(error: kubediff_history::Error) -> Self {
        AskError::from(error).into()
    }
}

impl From<minijinja::Error> for Problem {
    fn from(error: minijinja::Error) -> Self {
        Self {
            detail: format!("{error:#}"),
            hint: "This is a mistake of kubediff: report it.".to_owned(),
            ..Self::new(StatusCode::INTERNAL_SERVER_ERROR, "The page cannot be made")
        }
    }
}
