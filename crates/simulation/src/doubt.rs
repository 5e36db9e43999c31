//! Where the oracle accepts another state than the server's, and why.

use crate::truth::{KEYS, Key};

/// One key may have another state than the server's. A good version of at least `until` ends that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doubt {
    pub(crate) until: u64,
    pub(crate) cause: Cause,
    /// The engine knows the key, so the key must be in quarantine as long as the doubt lasts.
    pub(crate) is_held: bool,
    /// The number of lists that had begun when the doubt arose. A list that begins later ends it.
    pub(crate) lists: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// The version was damaged, and the engine could decode its key.
    Damage,
    /// The version was damaged, perhaps its key, too.
    Half,
    /// The object changed at an unchanged version.
    Revision,
    /// The object changed at an unchanged version in each of several lists. The engine ignores such changes until the
    /// next version.
    Unsteady,
    /// As [`Cause::Lie`], unless the cache has the object at this version or a newer one.
    Excuse(u64),
    /// The server sent an old state as if it were new.
    Lie,
}

/// The keys whose changes a subscription may receive in another order than they happened.
#[derive(Clone, Default)]
pub(crate) struct Doubts {
    everything: bool,
    keys: [bool; KEYS as usize],
}

impl Doubts {
    pub(crate) fn everything(&mut self) {
        self.everything = true;
    }

    pub(crate) fn of(&mut self, key: Key) {
        if let Some(doubt) = self.keys.get_mut(usize::from(key.0)) {
            *doubt = true;
        }
    }

    pub(crate) fn join(&mut self, other: &Self) {
        self.everything |= other.everything;
        self.keys.iter_mut().zip(other.keys).for_each(|(doubt, other)| *doubt |= other);
    }

    pub(crate) fn has(&self, key: Key) -> bool {
        self.everything || self.keys.get(usize::from(key.0)).copied().unwrap_or_default()
    }
}

impl FromIterator<Key> for Doubts {
    fn from_iter<I: IntoIterator<Item = Key>>(keys: I) -> Self {
        let mut doubts = Self::default();
        keys.into_iter().for_each(|key| doubts.of(key));
        doubts
    }
}
