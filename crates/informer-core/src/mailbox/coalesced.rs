//! One pending change per key, in the order in which the keys became pending.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::{Change, Delta, Object, ObjectKey};

/// Pending changes, coalesced by key.
#[derive(Debug, Default)]
pub(super) struct Coalesced {
    by_key: HashMap<ObjectKey, Pending>,
    /// The keys in order. An entry whose key has no pending change any more, or has a later entry, stays until its turn.
    order: VecDeque<(u64, ObjectKey)>,
    next: u64,
    initial: usize,
}

/// A shorter queue is not compacted.
const ORDER_MIN: usize = 16;
/// The queue keeps the capacity for this many keys, at 120 bytes each, for the next backlog.
const KEPT_CAPACITY: usize = 256;

#[derive(Debug)]
struct Pending {
    at: u64,
    initial: bool,
    changes: Net,
}

/// The net change of one key.
#[derive(Debug)]
enum Net {
    One(Change),
    /// A deletion and an addition, where re-creations are split.
    Recreated {
        deleted: Change,
        added: Change,
        /// Whether the addition belongs to the initial list.
        initial: bool,
    },
}

impl Coalesced {
    /// Coalesces a change with the pending one of its key.
    pub(super) fn push(&mut self, change: Change, initial: bool, split_recreated: bool) {
        let key = change.key().clone();
        let Some(pending) = self.by_key.remove(&key) else {
            let at = self.place();
            self.order.push_back((at, key.clone()));
            return self.insert(key, Pending { at, initial, changes: Net::One(change) });
        };
        self.initial -= usize::from(pending.initial);
        match merge(pending.changes, change, split_recreated.then_some(initial)) {
            Some(changes) => self.insert(key, Pending { changes, ..pending }),
            None => self.clear_order(),
        }
    }

    /// Removes the change that became pending first. A split re-creation returns its addition with the next call.
    pub(super) fn pop(&mut self) -> Option<(Change, bool)> {
        let (at, key, pending) = loop {
            let (at, key) = self.order.pop_front()?;
            if self.by_key.get(&key).is_some_and(|pending| pending.at == at)
                && let Some(pending) = self.by_key.remove(&key)
            {
                break (at, key, pending);
            }
        };
        self.initial -= usize::from(pending.initial);
        if self.by_key.is_empty() && self.by_key.capacity() > KEPT_CAPACITY {
            // A large backlog such as the initial list must not leave its capacity behind.
            (self.by_key, self.order) = (HashMap::new(), VecDeque::new());
        }
        match pending.changes {
            Net::One(change) => Some((change, pending.initial)),
            Net::Recreated { deleted, added, initial } => {
                // An addition outside the initial list must come after the changes that belong to it.
                let at = if initial == pending.initial {
                    self.order.push_front((at, key.clone()));
                    at
                } else {
                    let last = self.place();
                    self.order.push_back((last, key.clone()));
                    last
                };
                self.insert(key, Pending { at, initial, changes: Net::One(added) });
                Some((deleted, pending.initial))
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// How many pending changes belong to the initial list.
    pub(super) fn initial_len(&self) -> usize {
        self.initial
    }

    /// The next place, behind all others.
    fn place(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Removes entries without a change before they outnumber the others.
    fn clear_order(&mut self) {
        if self.order.len() > 2 * self.by_key.len() + ORDER_MIN {
            let by_key = &self.by_key;
            self.order.retain(|(at, key)| by_key.get(key).is_some_and(|pending| pending.at == *at));
        }
    }

    fn insert(&mut self, key: ObjectKey, pending: Pending) {
        self.initial += usize::from(pending.initial);
        self.by_key.insert(key, pending);
    }
}

/// Coalesces the changes into one, from the last delivered state to the newest; `None` when nothing is left to deliver. Where
/// re-creations are split, `split_initial` says whether the change belongs to the initial list.
fn merge(pending: Net, change: Change, split_initial: Option<bool>) -> Option<Net> {
    let origin = change.origin;
    let net = |delta| Some(Net::One(Change { delta, origin }));
    let (pending, pending_origin) = match pending {
        Net::One(Change { delta, origin }) => (delta, origin),
        Net::Recreated { deleted, initial, .. } => {
            return Some(match change.delta {
                Delta::Added(new) | Delta::Updated { new, .. } => {
                    Net::Recreated { deleted, added: Change { delta: Delta::Added(new), origin }, initial }
                }
                // The second incarnation came and went without being delivered.
                Delta::Deleted { .. } => Net::One(deleted),
            });
        }
    };
    match (pending, change.delta) {
        // The addition was not delivered, so the reader does not know the object.
        (Delta::Added(_), Delta::Deleted { .. }) => None,
        (Delta::Added(_), Delta::Updated { new, .. } | Delta::Added(new)) => net(Delta::Added(new)),
        (Delta::Updated { old, .. }, Delta::Updated { new, .. } | Delta::Added(new)) => {
            updated(old, new).and_then(net)
        }
        (Delta::Updated { old, .. }, Delta::Deleted { last, .. }) => net(gone(old, last)),
        (Delta::Deleted { old, last }, Delta::Added(new)) if split_initial.is_some() => {
            Some(Net::Recreated {
                deleted: Change { delta: Delta::Deleted { old, last }, origin: pending_origin },
                added: Change { delta: Delta::Added(new), origin },
                initial: split_initial == Some(true),
            })
        }
        (Delta::Deleted { old, .. }, Delta::Added(new) | Delta::Updated { new, .. }) => {
            updated(old, new).and_then(net)
        }
        (Delta::Deleted { old, .. }, Delta::Deleted { last, .. }) => net(gone(old, last)),
    }
}

/// An update from the reader's state to the current one; `None` if they are equal, for example after a namespace was removed
/// and added again.
fn updated(old: Arc<Object>, new: Arc<Object>) -> Option<Delta> {
    let is_same = old.uid() == new.uid() && old.resource_version() == new.resource_version();
    (!is_same || !old.same_content(&new)).then_some(Delta::Updated { old, new })
}

/// A deletion of the object that the reader knows. It does not name an incarnation that was never delivered.
fn gone(old: Arc<Object>, last: Arc<Object>) -> Delta {
    let last = if old.uid() == last.uid() { last } else { old.clone() };
    Delta::Deleted { old, last }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;

    fn object(number: u32) -> Arc<Object> {
        let json = format!(r#"{{"metadata":{{"name":"a-{number}","resourceVersion":"{number}"}}}}"#);
        Arc::new(Object::from_json(json.as_bytes()).unwrap())
    }

    fn change(delta: Delta) -> Change {
        Change { delta, origin: Origin::Watch }
    }

    #[test]
    fn h8_what_comes_and_goes_while_nobody_reads_takes_no_room() {
        let mut coalesced = Coalesced::default();
        coalesced.push(change(Delta::Added(object(0))), false, false);
        for number in 1..10_000 {
            let object = object(number);
            coalesced.push(change(Delta::Added(object.clone())), false, false);
            coalesced.push(change(Delta::Deleted { old: object.clone(), last: object }), false, false);
            assert!(coalesced.order.len() <= ORDER_MIN + 4, "{} places", coalesced.order.len());
        }
        assert!(coalesced.pop().is_some() && coalesced.pop().is_none());
    }

    #[test]
    fn h8_a_backlog_that_has_gone_before_anybody_read_it_takes_no_room() {
        // Of odd and of even length.
        for length in [1_000, 1_001] {
            let mut coalesced = Coalesced::default();
            for number in 0..length {
                coalesced.push(change(Delta::Added(object(number))), false, false);
            }
            for number in 0..length {
                let last = object(number);
                coalesced.push(change(Delta::Deleted { old: last.clone(), last }), false, false);
            }
            assert!(coalesced.order.len() <= ORDER_MIN, "{} places", coalesced.order.len());
        }
    }

    #[test]
    fn h8_a_backlog_that_was_read_takes_no_room() {
        let mut coalesced = Coalesced::default();
        for number in 0..10_000 {
            coalesced.push(change(Delta::Added(object(number))), true, false);
        }
        while coalesced.pop().is_some() {}
        assert!(coalesced.by_key.capacity() <= KEPT_CAPACITY && coalesced.order.capacity() <= KEPT_CAPACITY);
    }
}
