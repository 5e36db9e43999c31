//! What the loop has begun, and when it does what next.

use std::time::Duration;

use tokio::time::Instant;

use super::discovery::Discovery;

/// Not every user may watch definitions: rediscover periodically.
pub(super) const REDISCOVER: Duration = Duration::from_secs(60);
/// How often the inbox gets a sign of life.
pub(super) const ALIVE: Duration = Duration::from_secs(10);

/// The state of the loop.
pub(super) struct Agenda {
    /// Whether no discovery has succeeded yet.
    pub(super) at_start: bool,
    /// Under way or not.
    pub(super) discovery: Option<Discovery>,
    pub(super) rediscover: Instant,
    /// Whether the last discovery failed.
    pub(super) undiscovered: bool,
    pub(super) say_denials: Option<Instant>,
    pub(super) alive: Instant,
}

impl Agenda {
    /// Begins with a discovery.
    pub(super) fn new(discovery: Discovery) -> Self {
        Self {
            at_start: true,
            discovery: Some(discovery),
            rediscover: Instant::now() + REDISCOVER,
            undiscovered: false,
            say_denials: None,
            alive: Instant::now() + ALIVE,
        }
    }
}
