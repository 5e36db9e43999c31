//! The history: its writer, the form of its records, and the notes for the next run.

pub(crate) mod codec;
pub(crate) mod notes;
pub(crate) mod writer;
