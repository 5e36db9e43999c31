//! One pending change per key, in the order in which the keys became pending.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;

use super::Delivery;
use crate::{Change, Delta, Object, ObjectKey, Origin};

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
    One {
        change: Change,
        /// The end of the incarnation that the reader knows, if a later one has followed it.
        end: Option<End>,
    },
    /// A deletion and an addition where re-creations are split, or an addition and a deletion where cancelled changes are
    /// kept.
    Two {
        first: Change,
        second: Change,
        /// Whether the second change belongs to the initial list.
        initial: bool,
    },
}

/// The end of one incarnation of an object.
#[derive(Debug)]
struct End {
    /// The last known state of this incarnation.
    last: Arc<Object>,
    origin: Origin,
}

impl Coalesced {
    /// Coalesces a change with the pending one of its key.
    pub(super) fn push(&mut self, change: Change, initial: bool, delivery: Delivery) {
        let key = change.key().clone();
        let Some(pending) = self.by_key.remove(&key) else {
            let at = self.place();
            self.order.push_back((at, key.clone()));
            return self.insert(key, Pending { at, initial, changes: Net::of(change) });
        };
        self.initial -= usize::from(pending.initial);
        match merge(pending.changes, change, initial, delivery) {
            Some(changes) => self.insert(key, Pending { changes, ..pending }),
            None => self.clear_order(),
        }
    }

    /// Removes the change that became pending first. Where two changes are pending for its key, the next call returns the
    /// second one.
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
            Net::One { change, .. } => Some((change, pending.initial)),
            Net::Two { first, second, initial } => {
                // A change outside the initial list must come after the changes that belong to it.
                let at = if initial == pending.initial {
                    self.order.push_front((at, key.clone()));
                    at
                } else {
                    let last = self.place();
                    self.order.push_back((last, key.clone()));
                    last
                };
                self.insert(key, Pending { at, initial, changes: Net::of(second) });
                Some((first, pending.initial))
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

impl Net {
    fn of(change: Change) -> Self {
        let end = match &change.delta {
            Delta::Updated { old, new } => End::of(old, new, change.origin),
            Delta::Added(_) | Delta::Deleted { .. } => None,
        };
        Self::One { change, end }
    }
}

impl End {
    /// The end of `known` if `next` is another incarnation. A list or an event shows that one, so `known` was deleted even if
    /// its scope was removed before (`origin` is then that of `next`).
    fn of(known: &Arc<Object>, next: &Object, origin: Origin) -> Option<Self> {
        (known.uid() != next.uid()).then(|| Self { last: known.clone(), origin })
    }
}

/// Coalesces the changes into one, from the last delivered state to the newest; `None` when nothing is left to deliver.
/// `initial` says whether `change` belongs to the initial list.
fn merge(pending: Net, change: Change, initial: bool, delivery: Delivery) -> Option<Net> {
    let origin = change.origin;
    let net = |delta, end| Some(Net::One { change: Change { delta, origin }, end });
    let two = |first, origin, change| {
        Some(Net::Two { first: Change { delta: first, origin }, second: change, initial })
    };
    let (pending, pending_origin, end) = match pending {
        Net::One { change: Change { delta, origin }, end } => (delta, origin, end),
        Net::Two { first, initial, .. } => {
            let is_known = !matches!(first.delta, Delta::Added(_));
            return match change.delta {
                Delta::Added(new) | Delta::Updated { new, .. } if is_known => {
                    let second = Change { delta: Delta::Added(new), origin };
                    Some(Net::Two { first, second, initial })
                }
                Delta::Added(new) | Delta::Updated { new, .. } => net(Delta::Added(new), None),
                // The second incarnation came and went without being delivered.
                Delta::Deleted { .. } => Some(Net::of(first)),
            };
        }
    };
    let updated = |old: Arc<Object>, new: Arc<Object>, end| {
        let is_told = delivery.keep_cancelled || !is_same(&old, &new);
        is_told.then(|| Delta::Updated { old, new }).and_then(|delta| net(delta, end))
    };
    match (pending, change.delta) {
        (Delta::Added(new), deleted @ Delta::Deleted { .. }) if delivery.keep_cancelled => {
            two(Delta::Added(new), pending_origin, Change { delta: deleted, origin })
        }
        // The addition was not delivered, so the reader does not know the object.
        (Delta::Added(_), Delta::Deleted { .. }) => None,
        (Delta::Added(_), Delta::Updated { new, .. } | Delta::Added(new)) => net(Delta::Added(new), None),
        (Delta::Updated { old, new: last }, Delta::Updated { new, .. } | Delta::Added(new)) => {
            let end = end.or_else(|| End::of(&last, &new, origin));
            updated(old, new, end)
        }
        (Delta::Updated { old, .. }, Delta::Deleted { last, .. }) => Some(gone(old, last, origin, end)),
        (deleted @ Delta::Deleted { .. }, Delta::Added(new)) if delivery.split_recreated => {
            two(deleted, pending_origin, Change { delta: Delta::Added(new), origin })
        }
        (Delta::Deleted { old, last }, Delta::Added(new) | Delta::Updated { new, .. }) => {
            let noticed = if pending_origin == Origin::Scope { origin } else { pending_origin };
            let end = End::of(&last, &new, noticed);
            updated(old, new, end)
        }
        (Delta::Deleted { old, .. }, Delta::Deleted { last, .. }) => Some(gone(old, last, origin, end)),
    }
}

/// Whether two states are equal, for example after a namespace was removed and added again.
fn is_same(old: &Object, new: &Object) -> bool {
    old.uid() == new.uid() && old.resource_version() == new.resource_version() && old.same_content(new)
}

/// A deletion of the incarnation that the reader knows: with the origin of its own end, and without the name of an
/// incarnation that was never delivered.
fn gone(old: Arc<Object>, last: Arc<Object>, origin: Origin, end: Option<End>) -> Net {
    let End { last, origin } = match end {
        Some(end) => end,
        None if old.uid() == last.uid() => End { last, origin },
        None => End { last: old.clone(), origin },
    };
    Net::One { change: Change { delta: Delta::Deleted { old, last }, origin }, end: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;
    use crate::mailbox::Mode;

    const LATEST: Delivery = Delivery { mode: Mode::Latest, split_recreated: false, keep_cancelled: false };

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
        coalesced.push(change(Delta::Added(object(0))), false, LATEST);
        for number in 1..10_000 {
            let object = object(number);
            coalesced.push(change(Delta::Added(object.clone())), false, LATEST);
            coalesced.push(change(Delta::Deleted { old: object.clone(), last: object }), false, LATEST);
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
                coalesced.push(change(Delta::Added(object(number))), false, LATEST);
            }
            for number in 0..length {
                let last = object(number);
                coalesced.push(change(Delta::Deleted { old: last.clone(), last }), false, LATEST);
            }
            assert!(coalesced.order.len() <= ORDER_MIN, "{} places", coalesced.order.len());
        }
    }

    #[test]
    fn h8_a_backlog_that_was_read_takes_no_room() {
        let mut coalesced = Coalesced::default();
        for number in 0..10_000 {
            coalesced.push(change(Delta::Added(object(number))), true, LATEST);
        }
        while coalesced.pop().is_some() {}
        assert!(coalesced.by_key.capacity() <= KEPT_CAPACITY && coalesced.order.capacity() <= KEPT_CAPACITY);
    }
}
