//! An informer of a named resource follows it to another served version, kind or scope (F11).

use std::sync::{Arc, Mutex, OnceLock};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use super::Core;
use crate::lock::lock;
use crate::resource::ResourceType;
use crate::selection::Selection;

/// What an informer asks for, which may be another version of the resource than the one that it was made for.
pub(super) struct Served {
    now: Mutex<Arc<ResourceType>>,
    /// Set where the resource is followed.
    follows: OnceLock<Follows>,
}

struct Follows {
    /// The whole selection, of which only a part counts while the resource has no namespaces.
    selection: Selection,
    discover: Discover,
}

/// Asks for a resource by plural and group.
pub(crate) type Discover = Box<dyn Fn(String) -> BoxFuture<'static, Option<ResourceType>> + Send + Sync>;

impl Served {
    pub(super) fn new(resource: ResourceType) -> Self {
        Self { now: Mutex::new(Arc::new(resource)), follows: OnceLock::new() }
    }
}

impl Core {
    /// The resource as it is asked for now.
    pub(crate) fn served(&self) -> Arc<ResourceType> {
        lock(&self.served.now).clone()
    }

    /// Lets it follow the resource from now on.
    pub(crate) fn follow(&self, selection: Selection, discover: Discover) {
        // Whoever asks for the same informer again has the same of both.
        let _ = self.served.follows.set(Follows { selection, discover });
    }

    pub(super) fn follows(&self) -> bool {
        self.served.follows.get().is_some()
    }

    /// Whether the content is of another resource than the informer was made for.
    #[cfg(feature = "save")]
    pub(crate) fn has_followed(&self) -> bool {
        *self.served() != self.resource
    }

    /// Asks for the resource as this from now on, where it is to be found: `None` if it is asked for as that already.
    pub(super) fn serve_as(&self, resource: ResourceType) -> Option<Arc<ResourceType>> {
        let resource = Arc::new(resource);
        let former = std::mem::replace(&mut *lock(&self.served.now), resource.clone());
        (former != resource).then_some(former)
    }

    /// The scopes of another scope of the resource instead of those of the present one.
    pub(super) fn move_scopes(self: &Arc<Self>, former: &ResourceType) {
        let Some(Follows { selection, .. }) = self.served.follows.get() else { return };
        for scope in selection.of(&self.served()).scopes() {
            self.add_scope(scope);
        }
        for scope in selection.of(former).scopes() {
            // It ends also if nobody waits for that.
            drop(self.remove_scope(&scope));
        }
    }

    /// What discovery says of the resource. `None` if it knows none, or does not answer.
    pub(super) fn discover(&self) -> BoxFuture<'static, Option<ResourceType>> {
        match self.served.follows.get() {
            Some(Follows { discover, .. }) => discover(self.served().qualified_name()),
            None => ready(None).boxed(),
        }
    }
}
