//! The keys of lists that were asked for lately: the pages of a list do not search for them again.

use std::sync::{Arc, Mutex, PoisonError};

use kubediff_history::{Keys, KindName, Moment, Sight};

/// The memory of all of them.
const MOST: usize = 32 << 20;

/// What keys are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Of {
    pub(super) kind: KindName,
    pub(super) at: Moment,
    pub(super) sight: Option<Arc<Sight>>,
}

/// The keys that were asked for lately, the latest last.
#[derive(Default)]
pub(super) struct KeyCache(Mutex<Vec<(Of, Arc<Keys>)>>);

impl KeyCache {
    pub(super) fn get(&self, of: &Of) -> Option<Arc<Keys>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().position(|(known, _)| known == of)?;
        let found = known.remove(at);
        let keys = found.1.clone();
        known.push(found);
        Some(keys)
    }

    pub(super) fn put(&self, of: Of, keys: Arc<Keys>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.push((of, keys));
        while known.len() > 1 && known.iter().map(|(_, keys)| keys.bytes()).sum::<usize>() > MOST {
            known.remove(0);
        }
    }
}
