//! A readable record of a run, if somebody wants one.

use std::fmt::Write as _;

/// Where the lines of a run go.
#[derive(Debug, Default)]
pub struct Trace(Option<String>);

impl Trace {
    /// Keeps every line.
    pub fn kept() -> Self {
        Self(Some(String::new()))
    }

    /// Keeps none, and makes none.
    pub fn off() -> Self {
        Self(None)
    }

    /// What was kept.
    pub fn text(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    pub(crate) fn line(&mut self, line: impl FnOnce() -> String) {
        if let Some(text) = &mut self.0 {
            let _ = writeln!(text, "{}", line());
        }
    }
}
