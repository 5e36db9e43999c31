//! The state of the watches, for status questions.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::model::targets::Target;

/// The state of each watch.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Standing {
    /// Whether all that the server lets us watch was listed once.
    pub(crate) is_settled: bool,
    /// Why nothing is known of what the server has, until it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trouble: Option<String>,
    /// By resource.
    pub(crate) watches: BTreeMap<String, Watch>,
}

/// The state of one watch.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub(crate) enum Watch {
    /// Its first list is under way.
    Listing,
    /// It is watched.
    Watched,
    /// The server does not let us.
    Denied { reason: String, since: Timestamp },
    /// The watch is lost.
    Lost { reason: String, since: Timestamp },
}

impl Watch {
    /// The state alone.
    pub(crate) fn state(&self) -> &'static str {
        match self {
            Self::Listing => "listing",
            Self::Watched => "watched",
            Self::Denied { .. } => "denied",
            Self::Lost { .. } => "lost",
        }
    }
}

impl Standing {
    pub(super) fn waits(&mut self, target: &Target) {
        self.trouble = None;
        self.watches.insert(target.text(), Watch::Listing);
    }

    pub(super) fn watched(&mut self, target: &Target) {
        self.watches.insert(target.text(), Watch::Watched);
    }

    pub(super) fn not_watched(&mut self, target: &Target, reason: &str, denied: bool, now: Timestamp) {
        let since = match self.watches.get(&target.text()) {
            Some(Watch::Denied { since, .. }) if denied => *since,
            Some(Watch::Lost { since, .. }) if !denied => *since,
            _ => now,
        };
        let reason = reason.to_owned();
        let state = if denied { Watch::Denied { reason, since } } else { Watch::Lost { reason, since } };
        self.watches.insert(target.text(), state);
    }

    pub(super) fn gone(&mut self, target: &Target) {
        self.watches.remove(&target.text());
    }

    pub(super) fn settled(&mut self) {
        self.is_settled = true;
    }

    /// How many first lists are under way; `None` before discovery has finished.
    pub(crate) fn listing(&self) -> Option<usize> {
        let is_known = self.is_settled || !self.watches.is_empty();
        let listing = self.watches.values().filter(|watch| matches!(watch, Watch::Listing));
        is_known.then(|| listing.count())
    }

    /// Whether anything is watched at present.
    pub(crate) fn is_watching(&self) -> bool {
        self.watches.values().any(|watch| matches!(watch, Watch::Watched))
    }

    /// Why this is not ready, in words; `None` when it is. One resource that cannot be watched is no reason: its state says
    /// so, and the history has a gap for it.
    pub(crate) fn why_not_ready(&self) -> Option<String> {
        if let Some(trouble) = &self.trouble {
            return Some(trouble.clone());
        }
        if self.is_settled && self.is_watching() {
            return None;
        }
        Some(match self.lost() {
            Some(lost) => lost,
            None if self.watches.is_empty() && self.is_settled => {
                "none of the configured resources exist on the server".to_owned()
            }
            None if self.watches.is_empty() => "discovery has not finished".to_owned(),
            None if self.is_settled => "all watches are forbidden".to_owned(),
            None => format!("not listed yet: {}", self.names(|watch| matches!(watch, Watch::Listing))),
        })
    }

    /// The watches that are lost, in words.
    pub(crate) fn lost(&self) -> Option<String> {
        let reason = self.watches.values().find_map(|watch| match watch {
            Watch::Lost { reason, .. } => Some(reason),
            _ => None,
        })?;
        Some(format!("not watched: {} ({reason})", self.names(|watch| matches!(watch, Watch::Lost { .. }))))
    }

    fn names(&self, wanted: fn(&Watch) -> bool) -> String {
        let names: Vec<&str> =
            self.watches.iter().filter(|(_, watch)| wanted(watch)).map(|(name, _)| name.as_str()).collect();
        crate::show::summary::some(&names)
    }
}
