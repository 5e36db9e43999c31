//! Which objects an informer holds, and how: what a program says before the start.

pub(crate) mod choices;
pub(crate) mod cooling;
pub(crate) mod reflector_options;
pub(crate) mod resource;
pub(crate) mod runtime;
#[cfg(feature = "save")]
pub(crate) mod saving;
pub(crate) mod selection;
pub(crate) mod settings;
pub(crate) mod transform;
