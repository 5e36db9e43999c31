//! Where something is in a configuration: file, line, column, field.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A line and a column of a file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    pub(super) line: u64,
    pub(super) column: u64,
}

impl Mark {
    pub(super) const START: Self = Self { line: 1, column: 1 };
}

/// A field of a configuration: `sinks.ops.slack.token`, `routes[0].match`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FieldPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Field(String),
    Element(usize),
}

impl FieldPath {
    pub(super) fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The field of this name of what is here.
    #[must_use]
    pub(super) fn field(&self, name: &str) -> Self {
        self.then(Step::Field(name.to_owned()))
    }

    /// The element at this place of the list here.
    #[must_use]
    pub(super) fn element(&self, at: usize) -> Self {
        self.then(Step::Element(at))
    }

    fn then(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    /// Puts a step before all others.
    pub(super) fn lead_in(&mut self, step: Step) {
        self.0.insert(0, step);
    }

    /// Whether this is `other`, or in it.
    pub(super) fn is_in(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if name.contains(['.', '[', ' ', '\n']) => write!(f, "[{name:?}]")?,
                Step::Field(name) if at == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Element(at) => write!(f, "[{at}]")?,
            }
        }
        Ok(())
    }
}

/// A place in a configuration. Prints as `kubediff.yaml:12:5: sinks.ops`, which editors can jump to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: Arc<PathBuf>,
    /// The line, counted from 1.
    pub line: u64,
    /// The column, counted from 1.
    pub column: u64,
    /// The field: `sinks.ops`. Empty for the file as a whole.
    pub field: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)?;
        if self.field.is_empty() { Ok(()) } else { write!(f, ": {}", self.field) }
    }
}
