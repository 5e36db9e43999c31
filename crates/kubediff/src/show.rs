//! Changes as texts: for terminals, in summaries, by templates.

pub mod render;
pub(crate) mod summary;
pub(crate) mod template;
