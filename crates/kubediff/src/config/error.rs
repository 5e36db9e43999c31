//! The mistakes in a configuration.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::place::{FieldPath, Mark, Place};
use super::tree::Malformed;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration {} cannot be read", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Something is wrong in it.
    #[error("{}", in_words(.0))]
    Invalid(Vec<Problem>),
}

impl ConfigError {
    /// The mistakes in the file, in its order; none if it cannot be read.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Invalid(problems) => problems,
            Self::Unreadable { .. } => &[],
        }
    }
}

/// In one line.
fn in_words(problems: &[Problem]) -> String {
    match problems {
        [] => "the configuration is invalid".to_owned(),
        [one] => one.to_string(),
        [first, rest @ ..] => {
            format!("{first} (and {} more, which `kubediff config check` shows)", rest.len())
        }
    }
}

/// One mistake in a configuration, with its place. Prints as `kubediff.yaml:2:3: watch.resource: there is no such field`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// The mistake, and often its remedy. Never a value that may be a secret.
    pub message: String,
}

impl Problem {
    pub(super) fn new(file: &Arc<PathBuf>, field: FieldPath, mark: Mark, message: String) -> Self {
        let (line, column, field) = (mark.line, mark.column, field.to_string());
        Self { place: Place { file: file.clone(), line, column, field }, message }
    }

    pub(super) fn syntax(file: &Arc<PathBuf>, malformed: Malformed) -> Self {
        Self::new(file, FieldPath::default(), malformed.mark, malformed.message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}
