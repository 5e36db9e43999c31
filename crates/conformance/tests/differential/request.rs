//! Requests of a script, and what was answered.

use http::Method;
use serde_json::Value;

/// One request. In its text, `{ns}` is the namespace of the script, and `{rv:3}`, `{uid:3}`, `{continue:3}` are what the
/// answer to request 3 said, or nothing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) accept: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) body: Option<String>,
    /// Asked again until the answer has this code.
    pub(crate) until: Option<u16>,
}

/// The answer of a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: Body,
}

/// The body of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    Json(Value),
    Events(Vec<Value>),
    Text(String),
}

impl Request {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            accept: "application/json",
            content_type: "application/json",
            body: None,
            until: None,
        }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(crate) fn body(mut self, body: &Value) -> Self {
        self.body = Some(body.to_string());
        self
    }

    /// Asks again until the answer has this code: definitions take effect a moment after they are there.
    pub(crate) fn until(mut self, status: u16) -> Self {
        self.until = Some(status);
        self
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.query.iter().any(|(name, value)| *name == "watch" && value == "true")
    }
}

/// As curl would be told, for a person who wants to try it.
impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        for (index, (name, value)) in self.query.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { '?' } else { '&' })?;
        }
        if self.accept != "application/json" {
            write!(f, "\n    Accept: {}", self.accept)?;
        }
        if let Some(body) = &self.body {
            write!(f, "\n    Content-Type: {}\n    {body}", self.content_type)?;
        }
        Ok(())
    }
}
