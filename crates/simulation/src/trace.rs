//! A readable record of a run.

use std::fmt::Write as _;

/// Keeps the lines of a run, or drops them.
#[derive(Debug, Default)]
pub struct Trace(Option<String>);

impl Trace {
    /// A trace that keeps every line.
    pub fn kept() -> Self {
        Self(Some(String::new()))
    }

    /// A trace that keeps no line. It does not even build them.
    pub fn off() -> Self {
        Self(None)
    }

    /// The lines that were kept.
    pub fn text(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    pub(crate) fn line(&mut self, line: impl FnOnce() -> String) {
        if let Some(text) = &mut self.0 {
            let _ = writeln!(text, "{}", line());
        }
    }
}
