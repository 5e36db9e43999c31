//! Questions without an answer, for an assistant: each says what to do.

use http::StatusCode;
use serde::{Deserialize, Serialize};

/// A question without an answer: a problem of `/v1`, with a remedy in any case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Refusal {
    title: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    detail: String,
    #[serde(rename = "parameter", default, skip_serializing_if = "Option::is_none")]
    argument: Option<String>,
    #[serde(rename = "hint", default)]
    remedy: String,
}

impl Refusal {
    /// The problem that `/v1` has answered.
    pub(super) fn of(status: StatusCode, problem: &[u8]) -> Self {
        let mut refusal: Self = serde_json::from_slice(problem).unwrap_or_default();
        if refusal.title.is_empty() {
            refusal.title = format!("The answer has status {status}");
        }
        if refusal.remedy.is_empty() {
            refusal.remedy = match status {
                StatusCode::BAD_REQUEST => "Write this argument as the schema of the tool describes it.",
                StatusCode::NOT_FOUND => {
                    "Look for it with `changes` (for stories, with `fold`) or `objects`; `coverage` says which time the history knows."
                }
                _ => "Tell the person whom you help; nothing that you ask otherwise will mend it.",
            }
            .to_owned();
        }
        refusal
    }

    /// An argument has no meaning.
    pub(super) fn wrong(argument: &str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            title: format!("The argument `{argument}` cannot be understood"),
            detail: detail.into(),
            argument: Some(argument.to_owned()),
            remedy: remedy.into(),
        }
    }

    /// The answer is not there in time.
    pub(super) fn late() -> Self {
        Self {
            title: "The answer takes too long".to_owned(),
            remedy: "Choose a shorter time, a kind or a namespace.".to_owned(),
            ..Self::default()
        }
    }
}
