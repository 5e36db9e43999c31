//! Transforms: change an object before it is stored.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use informer_core::{DecodeError, Object, wire};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Changes, or drops, each object before it is stored. It is applied once to each stored version.
///
/// If it fails or panics for an object, that object is left out and reported; the others are not affected. A transform must
/// not change key, uid and resourceVersion.
///
/// ```
/// use informer::{Keep, Transform};
///
/// let slim = Transform::drop_managed_fields().then(Transform::json(|object| {
///     let system = object["metadata"]["namespace"] == "kube-system";
///     Ok(if system { Keep::No } else { Keep::Yes })
/// }));
/// # let _ = slim;
/// ```
#[derive(Clone)]
pub struct Transform(Vec<Step>);

#[derive(Clone)]
enum Step {
    DropManagedFields,
    Json { change: Arc<Function>, name: Option<Arc<str>> },
}

type Function = dyn Fn(&[u8]) -> Result<Option<Vec<u8>>, BoxError> + Send + Sync;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Whether a transformed object is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The object is stored.
    Yes,
    /// The cache behaves as if the object did not exist.
    No,
}

/// Why a transform failed on an object. Never holds any of the object's content.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransformError {
    #[error("the transform failed: {0}")]
    Failed(BoxError),
    #[error("the transform panicked")]
    Panicked,
    #[error("the result of the transform is not an object: {0}")]
    NoObject(#[from] wire::ScanError),
    #[error(transparent)]
    Unreadable(#[from] DecodeError),
    #[error("the transform changed the object's key, uid or resourceVersion")]
    Identity,
}

impl Transform {
    /// Drops `metadata.managedFields`, which is often half of an object, without decoding it. This is the only transform
    /// that works on protobuf: with any other one the server sends JSON.
    pub fn drop_managed_fields() -> Self {
        Self(vec![Step::DropManagedFields])
    }

    /// Changes the object as a JSON tree.
    pub fn json(change: impl Fn(&mut Value) -> Result<Keep, BoxError> + Send + Sync + 'static) -> Self {
        Self::typed::<Value>(change)
    }

    /// Changes the object as a value of a type. Fields that the type does not know are lost.
    pub fn typed<T: Serialize + DeserializeOwned + 'static>(
        change: impl Fn(&mut T) -> Result<Keep, BoxError> + Send + Sync + 'static,
    ) -> Self {
        Self::of(move |json| {
            // serde's message may quote the object's content.
            let mut object: T =
                serde_json::from_slice(json).map_err(|_| "the object does not fit the type")?;
            match change(&mut object)? {
                Keep::No => Ok(None),
                Keep::Yes => Ok(Some(serde_json::to_vec(&object)?)),
            }
        })
    }

    fn of(change: impl Fn(&[u8]) -> Result<Option<Vec<u8>>, BoxError> + Send + Sync + 'static) -> Self {
        Self(vec![Step::Json { change: Arc::new(change), name: None }])
    }

    /// This transform and then another.
    #[must_use]
    pub fn then(mut self, next: Self) -> Self {
        self.0.extend(next.0);
        self
    }

    /// This transform with a name. A cache that was saved with one transform is loaded only with a transform of the same
    /// name ([`Informer::load`](crate::Informer::load)). Choose another name when the effect changes.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        for step in &mut self.0 {
            if let Step::Json { name: own, .. } = step {
                *own = Some(name.into());
            }
        }
        self
    }

    /// The name of the transform, if all its steps have one.
    #[cfg(feature = "save")]
    pub(crate) fn name(&self) -> Option<String> {
        let names: Option<Vec<_>> = self.0.iter().map(Step::name).collect();
        names.map(|names| names.join(", "))
    }

    /// Whether the transform needs objects as JSON.
    pub(crate) fn wants_json(&self) -> bool {
        self.0.iter().any(|step| matches!(step, Step::Json { .. }))
    }

    pub(crate) fn into_core(self) -> informer_core::engine::TransformFn {
        Arc::new(move |object| self.apply(object).map_err(|error| error.to_string()))
    }

    fn apply(&self, object: &Object) -> Result<Option<Object>, TransformError> {
        let mut transformed: Option<Object> = None;
        for step in &self.0 {
            let before = transformed.as_ref().unwrap_or(object);
            let Some(after) = step.apply(before)? else { return Ok(None) };
            transformed = Some(after);
        }
        let Some(transformed) = transformed else { return Err(TransformError::Identity) };
        let same = transformed.key() == object.key()
            && transformed.uid() == object.uid()
            && transformed.resource_version() == object.resource_version();
        if same { Ok(Some(transformed)) } else { Err(TransformError::Identity) }
    }
}

impl Step {
    #[cfg(feature = "save")]
    fn name(&self) -> Option<&str> {
        match self {
            Self::DropManagedFields => Some("without managed fields"),
            Self::Json { name, .. } => name.as_deref(),
        }
    }

    fn apply(&self, object: &Object) -> Result<Option<Object>, TransformError> {
        let change = match self {
            Self::DropManagedFields => return Ok(Some(object.without_managed_fields()?)),
            Self::Json { change, .. } => change,
        };
        let json = object.json()?;
        let result =
            catch_unwind(AssertUnwindSafe(|| change(&json))).map_err(|_| TransformError::Panicked)?;
        let Some(json) = result.map_err(TransformError::Failed)? else { return Ok(None) };
        Ok(Some(Object::from_json(&json)?))
    }
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transform")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Object {
        Object::from_json(
            br#"{"kind":"Pod","metadata":{"name":"a","resourceVersion":"1","managedFields":[{}]},"spec":{"x":1}}"#,
        )
        .unwrap()
    }

    #[test]
    fn drops_managed_fields_without_a_tree() {
        let slim = Transform::drop_managed_fields().apply(&pod()).unwrap().unwrap();
        assert_eq!(
            *slim.json().unwrap(),
            *br#"{"kind":"Pod","metadata":{"name":"a","resourceVersion":"1"},"spec":{"x":1}}"#
        );
    }

    #[test]
    fn may_drop_the_object() {
        assert!(Transform::json(|_| Ok(Keep::No)).apply(&pod()).unwrap().is_none());
    }

    #[test]
    fn d6_a_failing_transform_is_an_error_of_that_object() {
        assert!(Transform::json(|_| Err("no".into())).apply(&pod()).is_err());
        assert!(Transform::json(|_| panic!("no")).apply(&pod()).is_err());
        let renames = Transform::json(|object| {
            object["metadata"]["name"] = "b".into();
            Ok(Keep::Yes)
        });
        assert!(matches!(renames.apply(&pod()), Err(TransformError::Identity)));
    }
}
