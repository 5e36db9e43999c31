//! User code as a command: it carries the writer on loan, and the operations for it.

use std::collections::VecDeque;

use crate::store::IndexReport;

use super::writer::{Operation, Outcome, Writer};

/// Operations that run user code (transforms, index functions with their decoding), or that take long.
///
/// The owner of the engine runs it on a thread that may block, and returns the result. Only one is on loan at a time.
#[must_use = "the engine waits for the result"]
pub struct Compute {
    writer: Box<Writer>,
    operations: VecDeque<Operation>,
}

/// A [`Compute`] that was run.
pub struct Computed {
    pub(super) writer: Box<Writer>,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) reports: Vec<IndexReport>,
}

impl Compute {
    pub(super) fn new(writer: Box<Writer>, operations: VecDeque<Operation>) -> Self {
        Self { writer, operations }
    }

    /// Runs the user's code and applies the operations. Readers see the result when this returns; subscribers are notified
    /// when the engine has the writer back. A panic in the user's code affects its object alone.
    pub fn run(self) -> Computed {
        let Self { mut writer, operations } = self;
        let outcomes = operations.into_iter().map(|operation| writer.apply(operation));
        let outcomes = outcomes.filter(Outcome::has_news).collect();
        Computed { reports: writer.take_reports(), writer, outcomes }
    }
}

impl std::fmt::Debug for Compute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Compute({} operations)", self.operations.len())
    }
}

impl std::fmt::Debug for Computed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Computed({} outcomes)", self.outcomes.len())
    }
}
