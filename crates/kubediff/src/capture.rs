//! The commands that show and record changes as they happen.

pub mod record;
pub(crate) mod screen;
pub(crate) mod taker;
pub mod watch;
