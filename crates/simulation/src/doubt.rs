//! States that may differ from the server's, and why.

use crate::truth::{KEYS, Key};

/// A state that is not as the server had it, until a good version of at least `until`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doubt {
    pub(crate) until: u64,
    pub(crate) cause: Cause,
    /// What it is about is known, and that it could not be read is said for as long as that is so.
    pub(crate) is_held: bool,
    /// How many lists had begun when it came about: one that begins later ends it.
    pub(crate) lists: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// It could not be read but for its key, and who reads knows that.
    Damage,
    /// It could not be read, perhaps not even which one it is, and who reads knows that.
    Half,
    /// It is another one at the same version.
    Revision,
    /// The same, more than once, so that it is followed no more before its next version.
    Unsteady,
    /// As [`Cause::Lie`], for who has the object at an older version, or not at all.
    Excuse(u64),
    /// It was so once, and nobody can know that it is not so any more.
    Lie,
}

/// Whose story may be told in another order than it happened.
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
