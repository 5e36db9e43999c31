//! Entries that wait for the Secrets of what they mention, and all behind them: records keep the order of their arrival.
//!
//! `kubectl apply -f folder` writes a ConfigMap before the Secret whose value it mentions.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The most bytes of objects that wait.
const MOST: usize = 64 << 20;

/// A queue in order of arrival.
pub(crate) struct Held<T> {
    wait: Duration,
    entries: VecDeque<Entry<T>>,
    bytes: usize,
    has_ended: bool,
    is_blind: bool,
}

struct Entry<T> {
    item: T,
    bytes: usize,
    /// When it may go. Entries behind it wait as long.
    until: Option<Instant>,
}

/// An entry that goes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due<T> {
    /// It has waited long enough, or had no need to.
    Waited(T),
    /// Too many bytes wait, or no Secret can come: its time is not over, or proves nothing.
    Early(T),
}

impl<T> Held<T> {
    pub(crate) fn new(wait: Duration) -> Self {
        Self { wait, entries: VecDeque::new(), bytes: 0, has_ended: false, is_blind: false }
    }

    /// Adds an entry that arrives now, and waits by itself if it `is_unsure`.
    pub(crate) fn push(&mut self, item: T, bytes: usize, is_unsure: bool, now: Instant) {
        let until = is_unsure.then(|| now + self.wait);
        self.entries.push_back(Entry { item, bytes, until });
        self.bytes += bytes;
    }

    /// Nobody waits any longer.
    pub(crate) fn end(&mut self) {
        self.has_ended = true;
    }

    /// Whether Secrets are not watched at present, so that waiting for one proves nothing.
    pub(crate) fn blind(&mut self, is_blind: bool) {
        self.is_blind = is_blind;
    }

    /// The oldest entry, if it need not wait any more.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Due<T>> {
        let is_due = self.entries.front()?.until.is_none_or(|until| until <= now);
        if !is_due && self.bytes <= MOST && !self.has_ended {
            return None;
        }
        let Entry { item, bytes, until } = self.entries.pop_front()?;
        self.bytes -= bytes;
        if self.entries.is_empty() {
            // A long queue must not leave its capacity behind.
            self.entries = VecDeque::new();
        }
        let proves_nothing = self.is_blind && until.is_some();
        Some(if is_due && !proves_nothing { Due::Waited(item) } else { Due::Early(item) })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How long the oldest entry has to wait yet.
    pub(crate) fn patience(&self, now: Instant) -> Option<Duration> {
        let until = self.entries.front()?.until?;
        Some(until.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Due, Held, MOST};

    #[test]
    fn k3_at_the_end_an_unsure_entry_goes_before_its_time() {
        let now = Instant::now();
        let mut held = Held::new(Duration::from_secs(1));
        held.push("a", 1, true, now);
        held.push("b", 1, false, now);
        held.end();
        assert_eq!([held.pop(now), held.pop(now)], [Some(Due::Early("a")), Some(Due::Waited("b"))]);
        assert!(held.is_empty());
    }

    /// While the watch of Secrets was lost, a rotated value went out in clear after a second.
    #[test]
    fn k3_while_secrets_are_not_watched_an_unsure_entry_is_as_unsure_after_its_time() {
        let now = Instant::now();
        let mut held = Held::new(Duration::from_secs(1));
        held.push("a", 1, true, now);
        held.push("b", 1, false, now);
        held.blind(true);
        assert_eq!(held.pop(now), None);
        let later = now + Duration::from_secs(1);
        assert_eq!([held.pop(later), held.pop(later)], [Some(Due::Early("a")), Some(Due::Waited("b"))]);
        held.push("c", 1, true, now);
        held.blind(false);
        assert_eq!(held.pop(later), Some(Due::Waited("c")));
    }

    #[test]
    fn k3_what_is_unsure_waits_with_all_behind_it() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut held = Held::new(Duration::from_secs(1));
        held.push("a", 1, false, at(0));
        held.push("b", 1, true, at(0));
        held.push("c", 1, false, at(100));
        held.push("d", 1, true, at(300));
        assert_eq!(held.pop(at(300)), Some(Due::Waited("a")));
        assert_eq!((held.pop(at(999)), held.patience(at(999))), (None, Some(Duration::from_millis(1))));
        assert_eq!(held.pop(at(1000)), Some(Due::Waited("b")));
        assert_eq!(held.pop(at(1000)), Some(Due::Waited("c")));
        assert_eq!((held.pop(at(1000)), held.patience(at(1000))), (None, Some(Duration::from_millis(300))));
        assert_eq!(held.pop(at(1300)), Some(Due::Waited("d")));
        assert!(held.is_empty() && held.patience(at(1300)).is_none());
    }

    #[test]
    fn k3_beyond_the_bound_the_oldest_go_early() {
        let now = Instant::now();
        let mut held = Held::new(Duration::from_secs(1));
        held.push("a", MOST, true, now);
        assert_eq!(held.pop(now), None);
        held.push("b", 1, false, now);
        assert_eq!(held.pop(now), Some(Due::Early("a")));
        assert_eq!(held.pop(now), Some(Due::Waited("b")));
    }
}
