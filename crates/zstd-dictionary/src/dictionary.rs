//! Dictionaries: made from content and samples, digested for packing and for unpacking.

use std::ffi::c_void;
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use zstd_sys::{
    ZDICT_finalizeDictionary, ZDICT_params_t, ZSTD_CDict, ZSTD_DDict, ZSTD_createCDict_advanced,
    ZSTD_createDDict_advanced, ZSTD_customMem, ZSTD_dictContentType_e, ZSTD_dictLoadMethod_e, ZSTD_freeCDict,
    ZSTD_freeDDict, ZSTD_getCParams, ZSTD_sizeof_CDict, ZSTD_sizeof_DDict,
};

use crate::{Error, LEVEL, checked};

/// An upper bound for the length of a header: zstd writes it into 256 bytes.
const HEADER_BOUND: usize = 512;
/// The dictionary number is unused, because frames do not name their dictionary.
const NUMBER: u32 = 1 << 15;
/// The size of the match table for packing, as log2 of its number of 4-byte entries.
const TABLE_LOG: std::ops::RangeInclusive<u32> = 12..=18;

/// The distance from the end of a dictionary up to which packing finds matches: zstd indexes eight bytes per table entry.
pub const MOST_CONTENT: usize = 8 << *TABLE_LOG.end();

/// The bytes of a dictionary. Its digested forms share them.
#[derive(Clone)]
pub struct Dictionary {
    bytes: Arc<[u8]>,
    form: Form,
}

/// How the bytes of a dictionary are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Content only.
    Raw,
    /// The result of [`finalize`].
    Finalized,
}

/// A dictionary digested for packing. Takes as much memory as half to all of its bytes, in addition to them.
pub struct Packing {
    digested: NonNull<ZSTD_CDict>,
    /// The buffer that `digested` points into.
    _bytes: Arc<[u8]>,
}

/// A dictionary digested for unpacking. Takes 27 KB in addition to its bytes.
pub struct Unpacking {
    digested: NonNull<ZSTD_DDict>,
    /// The buffer that `digested` points into.
    bytes: Arc<[u8]>,
}

/// Prepends to `content` the statistics of how these samples compress against it.
///
/// The result ends with `content`. More content may be inserted between statistics and `content` later: a buffer that was
/// packed with a dictionary can be unpacked with one that has more content before it.
///
/// # Errors
///
/// When the content or the samples are too small for statistics.
pub fn finalize(content: &[u8], samples: &[&[u8]]) -> Result<Vec<u8>, Error> {
    let lengths: Vec<usize> = samples.iter().map(|sample| sample.len()).collect();
    let count = u32::try_from(lengths.len()).map_err(|_| Error("too many samples"))?;
    let samples = samples.concat();
    let mut bytes = vec![0_u8; content.len() + HEADER_BOUND];
    let parameters = ZDICT_params_t { compressionLevel: LEVEL, notificationLevel: 0, dictID: NUMBER };
    // SAFETY: each pointer is to a live buffer of the length given with it, `bytes` to one that nothing else refers to;
    // `lengths` has `count` entries, which add up to the length of `samples`. zstd keeps no pointer.
    let written = unsafe {
        ZDICT_finalizeDictionary(
            bytes.as_mut_ptr().cast::<c_void>(),
            bytes.len(),
            content.as_ptr().cast::<c_void>(),
            content.len(),
            samples.as_ptr().cast::<c_void>(),
            lengths.as_ptr(),
            count,
            parameters,
        )
    };
    bytes.truncate(checked(written)?);
    if bytes.ends_with(content) { Ok(bytes) } else { Err(Error("the content was cut")) }
}

impl Dictionary {
    /// A dictionary of these bytes.
    ///
    /// # Errors
    ///
    /// When `bytes` is empty.
    pub fn new(bytes: Arc<[u8]>, form: Form) -> Result<Self, Error> {
        if bytes.is_empty() { Err(Error("an empty dictionary")) } else { Ok(Self { bytes, form }) }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The form of the bytes.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Digests the dictionary for packing. Takes 0.05 to 0.3 ms.
    ///
    /// # Errors
    ///
    /// When the bytes are not of their stated form, or memory is exhausted.
    pub fn packing(&self) -> Result<Packing, Error> {
        let bytes = &self.bytes;
        // SAFETY: accepts any numbers.
        let mut parameters = unsafe { ZSTD_getCParams(LEVEL, 0, bytes.len()) };
        // One entry per eight bytes: zstd's own choice for large dictionaries drops most of the content.
        let log = bytes.len().checked_ilog2().unwrap_or_default().saturating_sub(2);
        parameters.hashLog = log.clamp(*TABLE_LOG.start(), *TABLE_LOG.end());
        // SAFETY: the pointer is to `bytes.len()` live bytes, which never change and live as long as the result, since
        // that holds a reference to them.
        let digested = unsafe {
            ZSTD_createCDict_advanced(
                bytes.as_ptr().cast::<c_void>(),
                bytes.len(),
                ZSTD_dictLoadMethod_e::ZSTD_dlm_byRef,
                self.content_type(),
                parameters,
                DEFAULT_ALLOCATOR,
            )
        };
        let digested = NonNull::new(digested).ok_or(Error("the dictionary cannot be digested"))?;
        Ok(Packing { digested, _bytes: bytes.clone() })
    }

    /// Digests the dictionary for unpacking. Takes some microseconds.
    ///
    /// # Errors
    ///
    /// As [`Dictionary::packing`].
    pub fn unpacking(&self) -> Result<Unpacking, Error> {
        let bytes = &self.bytes;
        // SAFETY: as in `packing`.
        let digested = unsafe {
            ZSTD_createDDict_advanced(
                bytes.as_ptr().cast::<c_void>(),
                bytes.len(),
                ZSTD_dictLoadMethod_e::ZSTD_dlm_byRef,
                self.content_type(),
                DEFAULT_ALLOCATOR,
            )
        };
        let digested = NonNull::new(digested).ok_or(Error("the dictionary cannot be digested"))?;
        Ok(Unpacking { digested, bytes: bytes.clone() })
    }

    fn content_type(&self) -> ZSTD_dictContentType_e {
        match self.form {
            Form::Raw => ZSTD_dictContentType_e::ZSTD_dct_rawContent,
            Form::Finalized => ZSTD_dictContentType_e::ZSTD_dct_fullDict,
        }
    }
}

/// `malloc` and `free`.
const DEFAULT_ALLOCATOR: ZSTD_customMem =
    ZSTD_customMem { customAlloc: None, customFree: None, opaque: ptr::null_mut() };

impl Packing {
    pub(crate) fn as_ptr(&self) -> *const ZSTD_CDict {
        self.digested.as_ptr()
    }

    /// The bytes of memory that this takes, without the dictionary's own.
    pub fn held_bytes(&self) -> usize {
        // SAFETY: the pointer is to a live dictionary, which is only read.
        unsafe { ZSTD_sizeof_CDict(self.as_ptr()) }
    }
}

impl Unpacking {
    /// The dictionary's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn as_ptr(&self) -> *const ZSTD_DDict {
        self.digested.as_ptr()
    }

    /// The bytes of memory that this takes, without the dictionary's own.
    pub fn held_bytes(&self) -> usize {
        // SAFETY: the pointer is to a live dictionary, which is only read.
        unsafe { ZSTD_sizeof_DDict(self.as_ptr()) }
    }
}

impl Drop for Packing {
    fn drop(&mut self) {
        // SAFETY: it is freed once only, and a `Packer` refers to it only during `pack`, which borrows it. The result
        // only says that there was something to free.
        let _ = unsafe { ZSTD_freeCDict(self.digested.as_ptr()) };
    }
}

impl Drop for Unpacking {
    fn drop(&mut self) {
        // SAFETY: it is freed once only, and an `Unpacker` refers to it only during `unpack`, which borrows it. The
        // result only says that there was something to free.
        let _ = unsafe { ZSTD_freeDDict(self.digested.as_ptr()) };
    }
}

// SAFETY: a digested dictionary belongs to no thread; zstd's interface allows moving it between threads.
unsafe impl Send for Packing {}
// SAFETY: it is read-only once made; zstd's interface allows any number of threads to use it at once.
unsafe impl Sync for Packing {}
// SAFETY: as for `Packing`.
unsafe impl Send for Unpacking {}
// SAFETY: as for `Packing`.
unsafe impl Sync for Unpacking {}

impl fmt::Debug for Dictionary {
    /// Shows the length only: the bytes may be a Secret's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dictionary({:?}, {} bytes)", self.form, self.bytes.len())
    }
}

impl fmt::Debug for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Packing")
    }
}

impl fmt::Debug for Unpacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unpacking")
    }
}
