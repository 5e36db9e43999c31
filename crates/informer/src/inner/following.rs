//! An informer of a named resource follows it to another served version, kind or scope (F11).

use std::sync::{Arc, Mutex, OnceLock};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use super::Core;
use super::driver::Message;
use crate::lock::lock;
use crate::options::resource::ResourceType;
use crate::options::selection::Selection;

/// The resource that an informer requests. It may be another version than the one that the informer was made for.
pub(super) struct Served {
    now: Mutex<Arc<ResourceType>>,
    /// Set if the informer follows its resource.
    follows: OnceLock<Follows>,
}

struct Follows {
    /// The selection as the program gave it. Its namespaces do not count while the resource is cluster-wide.
    selection: Selection,
    discover: Discover,
}

/// Asks how a resource is served now.
pub(crate) type Discover =
    Box<dyn Fn(ResourceType) -> BoxFuture<'static, Option<ResourceType>> + Send + Sync>;

impl Served {
    pub(super) fn new(resource: ResourceType) -> Self {
        Self { now: Mutex::new(Arc::new(resource)), follows: OnceLock::new() }
    }
}

impl Core {
    /// The resource that the informer requests now.
    pub(crate) fn served(&self) -> Arc<ResourceType> {
        lock(&self.served.now).clone()
    }

    /// Makes the informer follow its resource from now on.
    pub(crate) fn follow(&self, selection: Selection, discover: Discover) {
        // A second call has no effect: callers that share this informer pass the same selection and server.
        if self.served.follows.set(Follows { selection, discover }).is_ok() {
            // An informer that has ended follows nothing.
            let _ = self.messages.send(Message::Follow);
        }
    }

    /// Whether the informer requests another resource than the one that it was made for.
    #[cfg(feature = "save")]
    pub(crate) fn has_followed(&self) -> bool {
        *self.served() != self.resource
    }

    /// Changes the requested resource. Returns the former one, or `None` if nothing changed.
    pub(super) fn serve_as(&self, resource: ResourceType) -> Option<Arc<ResourceType>> {
        let resource = Arc::new(resource);
        let former = std::mem::replace(&mut *lock(&self.served.now), resource.clone());
        (former != resource).then_some(former)
    }

    /// Replaces the scopes after the resource's scope has changed.
    pub(super) fn move_scopes(self: &Arc<Self>, former: &ResourceType) {
        let Some(Follows { selection, .. }) = self.served.follows.get() else { return };
        for scope in selection.of(&self.served()).scopes() {
            self.add_scope(scope);
        }
        for scope in selection.of(former).scopes() {
            // The scope is removed even if this future is dropped.
            drop(self.remove_scope(&scope));
        }
    }

    /// Asks discovery for the resource. `None` if discovery does not know it, or does not answer.
    pub(super) fn discover(&self) -> BoxFuture<'static, Option<ResourceType>> {
        match self.served.follows.get() {
            Some(Follows { discover, .. }) => discover((*self.served()).clone()),
            None => ready(None).boxed(),
        }
    }
}
