//! Times of versions rise, whatever the clock does.

/// A clock that is set back by more than this is a gap, in microseconds.
const SET_BACK: i64 = 1_000_000;
/// A clock that is set back by more than this was wrong before, and not now.
const WRONG: i64 = 3_600 * 1_000_000;

/// The time of the last version, or of noise after it.
pub(crate) struct Time {
    latest: i64,
    /// Whether the clock is behind it, and that is recorded.
    is_set_back: bool,
}

/// The time of a new version.
pub(crate) struct Timed {
    pub(crate) at: i64,
    /// The gap that comes before it: from when to when, and why.
    pub(crate) set_back: Option<((i64, i64), String)>,
    /// Times rise again from here on. Those before are not later than this one.
    pub(crate) disordered_until: Option<i64>,
}

impl Time {
    /// After a version of this time.
    pub(crate) fn after(latest: Option<i64>) -> Self {
        Self { latest: latest.unwrap_or(i64::MIN), is_set_back: false }
    }

    /// The time of what was observed at this time: never before the last version, so that each time is a place in the log.
    pub(crate) fn of(&mut self, observed_at: i64) -> Timed {
        let back = self.latest.saturating_sub(observed_at);
        let (is_set_back, was_wrong) = (back > SET_BACK, back > WRONG);
        let set_back = (is_set_back && !self.is_set_back).then(|| {
            let reason = format!("the clock was set back by {} s", back / 1_000_000);
            ((observed_at, self.latest), reason)
        });
        self.is_set_back = is_set_back && !was_wrong;
        let disordered_until = Some(self.latest).filter(|latest| was_wrong && *latest > i64::MIN);
        self.latest = if was_wrong { observed_at } else { observed_at.max(self.latest) };
        Timed { at: self.latest, set_back, disordered_until }
    }
}
