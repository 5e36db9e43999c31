//! The oracle's knowledge of a saved source beyond the saved bytes. The client that loads the source needs it.

use std::collections::BTreeMap;

use informer_core::Scope;

use crate::doubt::{Cause, Doubt};
use crate::truth::Key;

/// The oracle's knowledge of one saved source.
#[derive(Clone)]
pub(crate) struct Past {
    pub(crate) scope: Scope,
    pub(crate) epoch: usize,
    pub(crate) is_deceived: bool,
    /// The schema with which the content was listed.
    pub(crate) schema: u64,
    pub(crate) doubts: BTreeMap<(Key, Cause), Doubt>,
}

/// The start of a client.
#[derive(Default)]
pub(crate) struct Beginning {
    /// The version of the loaded content; 0 if nothing was loaded.
    pub(crate) loaded_at: u64,
    pub(crate) past: Option<Past>,
}

impl Past {
    /// The file claims that nothing was undecodable. So damage is no doubt any more.
    pub(crate) fn read_in_full(mut self) -> Self {
        self.doubts.retain(|(_, cause), _| !matches!(cause, Cause::Damage | Cause::Half));
        self
    }

    /// The same for the next informer, which has not listed yet.
    pub(crate) fn before_any_list(mut self) -> Self {
        for doubt in self.doubts.values_mut() {
            *doubt = Doubt { lists: 0, is_held: false, ..*doubt };
        }
        self
    }
}
