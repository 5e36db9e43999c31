//! A change as a subscription with a filter gets it.

use std::sync::Arc;

use crate::{Delta, Object};

/// A change of one key among the objects that a filter matches (contract H12).
///
/// ```
/// use std::sync::Arc;
///
/// use informer_core::mailbox::Filtered;
/// use informer_core::{Delta, Object};
///
/// fn of_a_node(delta: Delta, is_on_the_node: fn(&Arc<Object>) -> bool) -> &'static str {
///     match Filtered::of(delta, is_on_the_node, is_on_the_node) {
///         None => "nothing of this node",
///         Some(Filtered::Added(_)) => "it is here now",
///         Some(Filtered::Updated { .. }) => "it is still here",
///         Some(Filtered::Left { .. }) => "it is elsewhere",
///         Some(Filtered::Deleted { .. }) => "it is gone",
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub enum Filtered {
    /// The filter matches an object that it did not match before: the object is new, or has changed.
    Added(Arc<Object>),
    /// The filter matches the object before and after the change.
    Updated {
        /// The state before.
        old: Arc<Object>,
        /// The state now.
        new: Arc<Object>,
    },
    /// The filter does not match the object any more. The object was not deleted.
    Left {
        /// The last state that the filter matches.
        last: Arc<Object>,
    },
    /// An object that the filter matched was deleted.
    Deleted {
        /// The last state that the filter matches.
        old: Arc<Object>,
        /// The last known state, whether or not the filter matches it.
        last: Arc<Object>,
    },
}

impl Filtered {
    /// The change among the objects that a filter matches; `None` if it shows nothing of them. `was_in` is asked about the
    /// state before the change, and `is_in` about the state after it.
    pub fn of(
        delta: Delta,
        was_in: impl FnOnce(&Arc<Object>) -> bool,
        is_in: impl FnOnce(&Arc<Object>) -> bool,
    ) -> Option<Self> {
        match delta {
            Delta::Added(new) => is_in(&new).then_some(Self::Added(new)),
            Delta::Updated { old, new } => match (was_in(&old), is_in(&new)) {
                (false, false) => None,
                (false, true) => Some(Self::Added(new)),
                (true, true) => Some(Self::Updated { old, new }),
                (true, false) if old.uid() == new.uid() => Some(Self::Left { last: old }),
                // Another incarnation has the key. This one was deleted, and no later state of it is known.
                (true, false) => Some(Self::Deleted { last: old.clone(), old }),
            },
            Delta::Deleted { old, last } => was_in(&old).then_some(Self::Deleted { old, last }),
        }
    }
}
