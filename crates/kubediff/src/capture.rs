//! The commands that show and record changes as they happen.

pub(crate) mod held;
pub mod record;
pub(crate) mod screen;
pub(crate) mod taker;
pub mod watch;
