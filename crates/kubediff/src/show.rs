//! Changes as texts: for terminals, in summaries, by templates.

pub(crate) mod body;
pub mod render;
pub(crate) mod summary;
pub(crate) mod template;
