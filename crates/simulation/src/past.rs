//! What is known of a client's content that the content does not say, so that a later client can go on with it.

use std::collections::BTreeMap;

use informer_core::Scope;

use crate::doubt::{Cause, Doubt};
use crate::truth::Key;

/// What is known of one source's part.
#[derive(Clone)]
pub(crate) struct Past {
    pub(crate) scope: Scope,
    pub(crate) epoch: usize,
    pub(crate) is_deceived: bool,
    pub(crate) doubts: BTreeMap<(Key, Cause), Doubt>,
}

/// What a client begins with.
#[derive(Default)]
pub(crate) struct Beginning {
    /// The version of what was loaded; 0 if nothing was.
    pub(crate) loaded_at: u64,
    pub(crate) past: Option<Past>,
}

impl Past {
    /// Where nothing is said to be unread, what was damaged is no excuse.
    pub(crate) fn read_in_full(mut self) -> Self {
        self.doubts.retain(|(_, cause), _| !matches!(cause, Cause::Damage | Cause::Half));
        self
    }

    /// What the next informer begins with: it has not listed yet.
    pub(crate) fn before_any_list(mut self) -> Self {
        for doubt in self.doubts.values_mut() {
            *doubt = Doubt { lists: 0, is_held: false, ..*doubt };
        }
        self
    }
}
