//! The wall clock, which tests replace.

/// Tells the time. Delays and deadlines do not use it: they use tokio's clock, which tests can pause.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> jiff::Timestamp;
}

/// The clock of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }
}
