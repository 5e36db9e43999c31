//! What is watched at present, for those who ask.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::targets::Target;

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

    /// Why this is not ready, in words; `None` when it is. Resources that the server does not let us watch are no reason:
    /// the history has gaps for them.
    pub(crate) fn why_not_ready(&self) -> Option<String> {
        let of = |wanted: fn(&Watch) -> bool| {
            self.watches.iter().filter(move |(_, watch)| wanted(watch)).map(|(name, _)| name.as_str())
        };
        let lost: Vec<&str> = of(|watch| matches!(watch, Watch::Lost { .. })).collect();
        let listing: Vec<&str> = of(|watch| matches!(watch, Watch::Listing)).collect();
        let watched = of(|watch| matches!(watch, Watch::Watched)).count();
        if let Some(trouble) = &self.trouble {
            return Some(trouble.clone());
        }
        if !lost.is_empty() {
            let reason = self.watches.values().find_map(|watch| match watch {
                Watch::Lost { reason, .. } => Some(reason.as_str()),
                _ => None,
            });
            return Some(format!("not watched: {} ({})", lost.join(", "), reason.unwrap_or_default()));
        }
        if !self.is_settled {
            return Some(match listing.as_slice() {
                [] => "the server has not said yet what it has".to_owned(),
                listing => format!("not listed yet: {}", listing.join(", ")),
            });
        }
        (watched == 0).then(|| "the server lets us watch nothing".to_owned())
    }
}
