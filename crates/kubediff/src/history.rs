//! The history: its writer, and the notes for the next run.

pub(crate) mod mask;
pub(crate) mod notes;
pub(crate) mod scrub;
pub(crate) mod writer;
