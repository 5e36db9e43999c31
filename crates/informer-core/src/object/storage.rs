//! Where objects' bytes are kept, and in which form.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::bytes::ObjectBytes;
#[cfg(feature = "packed")]
use super::frames::{Family, unpack};
use crate::memory::{COUNTS, allocated};

/// Keeps the bytes of objects, whatever their encoding.
///
/// [`PlainStorage`] keeps them unchanged in memory. An implementation that keeps them elsewhere returns a handle by
/// [`Stored::new`].
///
/// ```
/// use std::borrow::Cow;
/// # use informer_core as informer;
/// use informer::{Object, PlainStorage, Storage, Stored};
///
/// /// Counts what it keeps.
/// #[derive(Default)]
/// struct Counting(std::sync::atomic::AtomicUsize);
///
/// impl Storage for Counting {
///     fn keep(&self, bytes: Cow<'_, [u8]>) -> Stored {
///         self.0.fetch_add(bytes.len(), std::sync::atomic::Ordering::Relaxed);
///         PlainStorage.keep(bytes)
///     }
/// }
///
/// let storage = Counting::default();
/// let json = br#"{"kind":"Pod","metadata":{"name":"cart","namespace":"shop","resourceVersion":"7"}}"#;
/// let object = Object::from_json(json)?.kept_in(&storage)?;
/// assert_eq!(*object.json()?, *json);
/// assert_eq!(storage.0.into_inner(), json.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Storage: Send + Sync + 'static {
    /// Takes the bytes of one version of an object; several threads may call it at once. Versions from a list are stored on
    /// arrival. A version from a watch event stays in memory as received while it is hot, and is stored when it cools. If a
    /// newer version replaces it before that, it is never stored.
    ///
    /// This does not fail: bytes that cannot be kept elsewhere are kept in memory.
    fn keep(&self, bytes: Cow<'_, [u8]>) -> Stored;

    /// The bytes of memory that stored objects share, which no object's [`Stored`] counts.
    fn shared_bytes(&self) -> usize {
        0
    }

    /// Whether it keeps bytes in memory as received. If so, versions from events are stored on arrival too.
    fn is_plain(&self) -> bool {
        false
    }
}

/// The bytes of one version of one object, as a [`Storage`] keeps them.
pub struct Stored(Form);

enum Form {
    Plain(Arc<[u8]>),
    #[cfg(feature = "packed")]
    Packed {
        frame: Box<[u8]>,
        length: u32,
        family: Option<Arc<Family>>,
    },
    Other {
        bytes: Box<dyn StoredBytes>,
        length: usize,
    },
}

/// Returns bytes that a [`Storage`] keeps.
pub trait StoredBytes: Send + Sync + 'static {
    /// The stored bytes, unchanged.
    ///
    /// # Errors
    ///
    /// When they are no longer available.
    fn read(&self) -> Result<ObjectBytes, StorageError>;

    /// The bytes of memory that this holds, itself included.
    fn held_bytes(&self) -> usize;
}

/// Stored bytes that are no longer available. Never holds any of them.
#[derive(Debug, thiserror::Error)]
#[error("{context}")]
pub struct StorageError {
    context: String,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StorageError {
    /// An error with the operation and the reason.
    pub fn new(
        context: impl Into<String>,
        source: impl Into<Option<Box<dyn std::error::Error + Send + Sync>>>,
    ) -> Self {
        Self { context: context.into(), source: source.into() }
    }
}

impl Stored {
    /// Bytes as they are.
    pub fn plain(bytes: Cow<'_, [u8]>) -> Self {
        Self(Form::Plain(match bytes {
            Cow::Borrowed(bytes) => bytes.into(),
            Cow::Owned(bytes) => bytes.into(),
        }))
    }

    /// Bytes that were packed.
    #[cfg(feature = "packed")]
    pub(super) fn packed(frame: Box<[u8]>, length: u32, family: Option<Arc<Family>>) -> Self {
        Self(Form::Packed { frame, length, family })
    }

    /// `length` bytes that `bytes` returns on demand.
    pub fn new(length: usize, bytes: impl StoredBytes) -> Self {
        Self(Form::Other { bytes: Box::new(bytes), length })
    }

    /// The stored bytes, unchanged.
    ///
    /// # Errors
    ///
    /// When they are no longer available.
    pub fn read(&self) -> Result<ObjectBytes, StorageError> {
        match &self.0 {
            Form::Plain(bytes) => Ok(bytes.clone().into()),
            #[cfg(feature = "packed")]
            Form::Packed { frame, length, family } => {
                unpack(frame, *length as usize, family.as_ref()).map(Into::into).map_err(|error| {
                    StorageError::new("the packed bytes cannot be unpacked", Some(Box::new(error).into()))
                })
            }
            Form::Other { bytes, .. } => bytes.read(),
        }
    }

    /// How many bytes there are.
    pub(super) fn length(&self) -> usize {
        match &self.0 {
            Form::Plain(bytes) => bytes.len(),
            #[cfg(feature = "packed")]
            Form::Packed { length, .. } => *length as usize,
            Form::Other { length, .. } => *length,
        }
    }

    /// The bytes of memory that this holds beside itself.
    pub fn held_bytes(&self) -> usize {
        match &self.0 {
            Form::Plain(bytes) => allocated(COUNTS + bytes.len()),
            #[cfg(feature = "packed")]
            Form::Packed { frame, .. } => allocated(frame.len()),
            Form::Other { bytes, .. } => bytes.held_bytes(),
        }
    }
}

impl fmt::Debug for Stored {
    /// Shows the size; the bytes are never printed, they may be a Secret's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stored({} bytes)", self.held_bytes())
    }
}

/// Keeps bytes as received.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainStorage;

impl Storage for PlainStorage {
    fn keep(&self, bytes: Cow<'_, [u8]>) -> Stored {
        Stored::plain(bytes)
    }

    fn is_plain(&self) -> bool {
        true
    }
}
