//! What a user may choose about lists and memory.

use std::sync::Arc;

use informer_core::{DecodeError, Object, PlainStorage, View};

use crate::shared::Keeping;

/// How the first list reads (later ones never go back behind what was seen).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FirstListChoice {
    /// The most recent state from servers that answer it from their cache (Kubernetes 1.34 and later), any state from
    /// older ones.
    #[default]
    ByServer,
    /// The most recent state.
    Consistent,
    /// Any state that the server has at hand, in pages. May be older than what another server of the cluster has shown.
    Any,
}

/// Whether first contents come as streaming lists (KEP-3157), where the server offers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamingListChoice {
    /// Where that costs less: not for JSON, of which it costs the server twice the CPU.
    #[default]
    WhereItPays,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How objects are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// As bytes. Decoded when looked at, shared while somebody holds the decoded value.
    #[default]
    Bytes,
    /// As bytes, and decoded from the first look on: for consumers that read every object all the time. A decoded pod
    /// takes 33 KB and more.
    Decoded,
}

impl Layout {
    /// What keeps the bytes.
    pub(crate) fn keeping(self) -> Keeping {
        match self {
            Self::Bytes | Self::Decoded => Arc::new(|_| Arc::new(PlainStorage)),
        }
    }

    /// An object as a `T`, kept or shared.
    pub(crate) fn view<T: View>(self, object: &Arc<Object>) -> Result<Arc<T>, DecodeError> {
        match self {
            Self::Bytes => T::of(object),
            Self::Decoded => T::kept(object),
        }
    }
}
