//! Changes of objects, their headlines, and recordings of them.

pub(crate) mod change;
pub(crate) mod envelope;
pub(crate) mod events;
pub(crate) mod facts;
pub(crate) mod headline;
pub(crate) mod image;

pub(crate) mod recording;
pub(crate) mod states;
