//! The commands that show and record changes as they happen.

pub(crate) mod consumer;
pub(crate) mod held;
pub mod record;
pub(crate) mod screen;
pub mod watch;
