//! A handle to the bytes of an object, independent of the object's lifetime.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The bytes of one version of an object, or its JSON: shared with the object, or unpacked for this one caller.
///
/// The handle owns or shares the bytes, because the object may change its form in memory at any time. A clone of shared bytes
/// is one reference count.
///
/// ```
/// # use informer_core as informer;
/// use informer::{Object, ObjectBytes};
///
/// let object = Object::from_json(br#"{"metadata":{"name":"cart","resourceVersion":"7"}}"#)?;
/// let bytes: ObjectBytes = object.bytes()?;
/// drop(object);
/// assert!(bytes.starts_with(b"{"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ObjectBytes(Repr);

#[derive(Clone)]
enum Repr {
    Shared(Arc<[u8]>),
    Own(Vec<u8>),
}

impl ObjectBytes {
    /// The bytes, copied where they are shared.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Repr::Shared(bytes) => bytes.to_vec(),
            Repr::Own(bytes) => bytes,
        }
    }
}

impl Deref for ObjectBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Shared(bytes) => bytes,
            Repr::Own(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for ObjectBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for ObjectBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for ObjectBytes {}

impl From<Vec<u8>> for ObjectBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Repr::Own(bytes))
    }
}

impl From<Arc<[u8]>> for ObjectBytes {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self(Repr::Shared(bytes))
    }
}

impl fmt::Debug for ObjectBytes {
    /// Shows the size; the bytes are never printed, they may be a Secret's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectBytes({} bytes)", self.len())
    }
}
