//! The packed layout: each version's bytes are compressed against a dictionary that follows the objects of its cache
//! (design D2).
//!
//! [`choice`] decides when a dictionary is worth its memory, and what goes into it; [`attempt`] tries one on samples of the
//! objects that stand out because they pack badly.

mod attempt;
mod choice;
mod standing_out;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::frames::pack;
use super::storage::{Storage, Stored};
use choice::Choice;

/// Keeps bytes compressed with zstd. The dictionary is made of the first objects that repeat each other, and grows by objects
/// that turn out to be different. Use one storage per cache.
///
/// Bytes that do not shrink by an eighth are kept unpacked. Packing takes about 5 us for 9 KB, unpacking 2 us. A cache too
/// small for a dictionary has none; otherwise the dictionary takes some 100 KB, and at most an eighth of the objects'
/// unpacked size.
///
/// Occasionally one object takes longer to keep, because a better dictionary is tried on some samples. That takes below 1 ms
/// of CPU while the dictionary is small, and up to 25 ms at its maximum of 2 MB. Other threads that keep objects at the same
/// time do not wait for it.
#[derive(Default)]
pub struct PackedStorage {
    /// Held for a few additions; packing and building dictionaries happen outside.
    choice: Mutex<Choice>,
    /// Held while a dictionary is tried, so that one thread at a time does so. Two attempts that grew from the same
    /// dictionary would each put other content where the frames of the other expect theirs.
    attempts: Mutex<()>,
}

impl PackedStorage {
    /// A storage for the objects of one cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// The choice is consistent after each of its steps, so a poisoned lock is usable.
    fn choice(&self) -> MutexGuard<'_, Choice> {
        self.choice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries a better dictionary, unless another thread is doing so.
    fn attempt(&self) {
        let _alone = match self.attempts.try_lock() {
            Ok(alone) => alone,
            // An attempt that panicked has not changed the choice.
            Err(TryLockError::Poisoned(alone)) => alone.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let Some(attempt) = self.choice().attempt() else { return };
        let outcome = attempt.run();
        self.choice().conclude(outcome);
    }
}

impl Storage for PackedStorage {
    fn keep(&self, bytes: Cow<'_, [u8]>) -> Stored {
        let current = self.choice().current();
        let packing = current.as_ref().map(|current| &*current.packing);
        let Some((length, frame)) = u32::try_from(bytes.len()).ok().zip(pack(&bytes, packing)) else {
            return Stored::plain(bytes);
        };
        let family = current.map(|current| current.family);
        let is_due = self.choice().note(&frame, length, family.as_ref());
        if is_due {
            self.attempt();
        }
        if frame.len() + bytes.len() / 8 >= bytes.len() {
            return Stored::plain(bytes);
        }
        Stored::packed(frame, length, family)
    }

    fn shared_bytes(&self) -> usize {
        size_of::<Self>() + self.choice().held_bytes()
    }
}

impl fmt::Debug for PackedStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let choice = self.choice();
        write!(f, "PackedStorage({} dictionaries, {} bytes)", choice.dictionaries(), choice.held_bytes())
    }
}

#[cfg(test)]
mod tests;
