//! The user code of a run. It notices when the engine runs it outside a compute (F9).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use informer_core::Object;
use informer_core::engine;

use crate::plan::Transform;
use crate::render;
use crate::stored;

/// Knows whether user code may run now.
#[derive(Clone, Default)]
pub(crate) struct Guest(Arc<Place>);

#[derive(Default)]
struct Place {
    is_allowed: AtomicBool,
    was_elsewhere: AtomicBool,
}

impl Guest {
    /// Calls `act`, during which user code may run.
    pub(crate) fn allowed<R>(&self, act: impl FnOnce() -> R) -> R {
        self.0.is_allowed.store(true, Ordering::Relaxed);
        let result = act();
        self.0.is_allowed.store(false, Ordering::Relaxed);
        result
    }

    /// Whether user code ran at any other time.
    pub(crate) fn was_elsewhere(&self) -> bool {
        self.0.was_elsewhere.load(Ordering::Relaxed)
    }

    fn runs(&self) {
        if !self.0.is_allowed.load(Ordering::Relaxed) {
            self.0.was_elsewhere.store(true, Ordering::Relaxed);
        }
    }

    /// The index function of a run.
    pub(crate) fn index(
        &self,
    ) -> impl Fn(&Object) -> Result<Vec<&'static str>, &'static str> + Send + Sync + use<> {
        let guest = self.clone();
        move |object| {
            guest.runs();
            if fails_index(object) {
                return Err("the index function fails");
            }
            Ok(stored::read(object).map(|(_, state)| render::label(state.value)).into_iter().collect())
        }
    }

    /// The transform of a plan; `None` if it does nothing.
    pub(crate) fn transform(&self, transform: Transform) -> Option<engine::TransformFn> {
        if transform == Transform::default() {
            return None;
        }
        let guest = self.clone();
        Some(Arc::new(move |object: &Object| {
            guest.runs();
            let (key, state) = stored::read(object).ok_or("it is not as the server wrote it")?;
            if transform.drops(state.value) {
                return Ok(None);
            }
            if transform.fails(state.value) {
                return Err("the transform fails".to_owned());
            }
            if !transform.changes {
                return object.without_managed_fields().map(Some).map_err(|error| error.to_string());
            }
            let shortened = render::shortened(key, state);
            Object::from_json(shortened.as_bytes()).map(Some).map_err(|error| error.to_string())
        }))
    }
}

/// Whether the index function fails for the object.
pub(crate) fn fails_index(object: &Object) -> bool {
    stored::read(object).is_some_and(|(_, state)| state.value % 6 == 5)
}

impl Transform {
    /// Whether the transform drops an object with this value.
    pub(crate) fn drops(self, value: u32) -> bool {
        self.drops_some && value % 5 == 3
    }

    /// Whether the transform fails for an object with this value.
    pub(crate) fn fails(self, value: u32) -> bool {
        self.fails_for_some && !self.drops(value) && value % 7 == 5
    }
}
