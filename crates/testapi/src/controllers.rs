//! The controllers that run beside an API server: of namespaces, of definitions, and the garbage collector.
//!
//! They run in the turn of the write that gives them work, so a deletion has cascaded before it is answered.

mod definitions;
mod garbage;
mod namespaces;

pub(crate) use definitions::serve_all;
pub(crate) use namespaces::{create_first, ensure};

use crate::core::Core;
use crate::turn::{Effect, Turn};

/// Writes in a turn of its own, and then runs the controllers until they have nothing left to do.
pub(crate) fn in_turn<T>(core: &Core, write: impl FnOnce(&Turn<'_>) -> T) -> T {
    let turn = Turn::new(core);
    let written = write(&turn);
    // A queue instead of calls: a chain of owners may be longer than a stack is deep.
    while let Some(effect) = turn.next_effect() {
        match effect {
            Effect::NamespaceEnds(name) => namespaces::empty(&turn, &name),
            Effect::NamespaceShrank(name) => namespaces::finish(&turn, &name),
            Effect::DefinitionChanged(target, object) => definitions::changed(&turn, &target, &object),
            Effect::DefinitionRemoved(object) => definitions::removed(&turn, &object),
            Effect::CustomObjectRemoved(resource) => definitions::finish(&turn, &resource),
            Effect::DeletionBegan(target, object) => garbage::deletion_began(&turn, &target, &object),
            Effect::Removed(object) => garbage::removed(&turn, &object),
        }
    }
    written
}
