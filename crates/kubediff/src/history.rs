//! The history: the writer, and the notes for the next run.

pub(crate) mod documents;
pub(crate) mod mask;
pub(crate) mod notes;
pub(crate) mod scrub;
pub(crate) mod shared;
pub(crate) mod writer;
