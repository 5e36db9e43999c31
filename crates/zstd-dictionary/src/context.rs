//! Contexts: the working memory of packing and unpacking, reused from one buffer to the next.

use std::ffi::c_void;
use std::fmt;
use std::ptr::{self, NonNull};

use zstd_sys::{
    ZSTD_CCtx, ZSTD_CCtx_refCDict, ZSTD_CCtx_reset, ZSTD_CCtx_setParameter, ZSTD_DCtx,
    ZSTD_DCtx_setParameter, ZSTD_ParamSwitch_e, ZSTD_ResetDirective, ZSTD_cParameter, ZSTD_compress2,
    ZSTD_compressBound, ZSTD_createCCtx, ZSTD_createDCtx, ZSTD_dParameter, ZSTD_decompress_usingDDict,
    ZSTD_dictAttachPref_e, ZSTD_format_e, ZSTD_freeCCtx, ZSTD_freeDCtx, ZSTD_sizeof_CCtx, ZSTD_sizeof_DCtx,
};

use crate::{Error, LEVEL, Packing, Unpacking, checked};

/// Packs one buffer after another. Takes 90 to 360 KB of memory, more after large buffers.
pub struct Packer(NonNull<ZSTD_CCtx>);

/// Unpacks one buffer after another. Takes 95 KB of memory.
pub struct Unpacker(NonNull<ZSTD_DCtx>);

/// How literals (bytes without a match) are written.
#[derive(Clone, Copy)]
enum Literals {
    AsTheyAre,
    /// Huffman-coded.
    Compressed,
}

impl Packer {
    /// A context for packing.
    ///
    /// # Errors
    ///
    /// When memory is exhausted.
    pub fn new() -> Result<Self, Error> {
        // SAFETY: no preconditions.
        let context = unsafe { ZSTD_createCCtx() };
        let packer = Self(NonNull::new(context).ok_or(Error("no memory for a context"))?);
        let magicless = ZSTD_format_e::ZSTD_f_zstd1_magicless as i32;
        let attached = ZSTD_dictAttachPref_e::ZSTD_dictForceAttach as i32;
        for (parameter, value) in [
            (ZSTD_cParameter::ZSTD_c_compressionLevel, LEVEL),
            (ZSTD_cParameter::ZSTD_c_contentSizeFlag, 0),
            (ZSTD_cParameter::ZSTD_c_checksumFlag, 0),
            (ZSTD_cParameter::ZSTD_c_dictIDFlag, 0),
            // ZSTD_c_format
            (ZSTD_cParameter::ZSTD_c_experimentalParam2, magicless),
            // ZSTD_c_forceAttachDict: zstd would copy the dictionary's tables for each buffer of more than 8 KB.
            (ZSTD_cParameter::ZSTD_c_experimentalParam4, attached),
        ] {
            // SAFETY: the pointer is to a live context that nothing else refers to; the rest are numbers.
            checked(unsafe { ZSTD_CCtx_setParameter(packer.0.as_ptr(), parameter, value) })?;
        }
        Ok(packer)
    }

    /// Compresses `bytes` into `frame`, replacing its content.
    ///
    /// Literals stay uncompressed if they are few, which makes unpacking four times as fast.
    ///
    /// # Errors
    ///
    /// When memory is exhausted.
    pub fn pack(
        &mut self,
        bytes: &[u8],
        dictionary: Option<&Packing>,
        frame: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if dictionary.is_none() {
            return self.pack_with(Literals::Compressed, bytes, dictionary, frame);
        }
        self.pack_with(Literals::AsTheyAre, bytes, dictionary, frame)?;
        // The dictionary does not contain this text: Huffman coding shrinks base64 by a quarter, and other text by more.
        if frame.len() > bytes.len() / 2 {
            self.pack_with(Literals::Compressed, bytes, dictionary, frame)?;
        }
        Ok(())
    }

    fn pack_with(
        &mut self,
        literals: Literals,
        bytes: &[u8],
        dictionary: Option<&Packing>,
        frame: &mut Vec<u8>,
    ) -> Result<(), Error> {
        // SAFETY: accepts any number.
        let bound = checked(unsafe { ZSTD_compressBound(bytes.len()) })?;
        frame.clear();
        frame.reserve(bound);
        let literals = match literals {
            Literals::AsTheyAre => ZSTD_ParamSwitch_e::ZSTD_ps_disable,
            Literals::Compressed => ZSTD_ParamSwitch_e::ZSTD_ps_enable,
        };
        // SAFETY: the pointer is to a live context, the rest are numbers. ZSTD_c_literalCompressionMode
        checked(unsafe {
            let mode = ZSTD_cParameter::ZSTD_c_experimentalParam5;
            ZSTD_CCtx_setParameter(self.0.as_ptr(), mode, literals as i32)
        })?;
        self.refer_to(dictionary)?;
        // SAFETY: the context is live, and `&mut self` proves that it has no other user; it refers to `dictionary`,
        // which is borrowed until the end of this function. The frame's buffer has `bound` bytes, and `bytes` is a live
        // slice.
        let packed = unsafe {
            ZSTD_compress2(
                self.0.as_ptr(),
                frame.as_mut_ptr().cast::<c_void>(),
                bound,
                bytes.as_ptr().cast::<c_void>(),
                bytes.len(),
            )
        };
        let packed = checked(packed);
        if packed.is_err() {
            // SAFETY: the context is live and has no other user.
            let _ = unsafe { ZSTD_CCtx_reset(self.0.as_ptr(), ZSTD_ResetDirective::ZSTD_reset_session_only) };
        }
        self.refer_to(None)?;
        let length = packed?;
        // SAFETY: zstd wrote `length` bytes into the buffer, which is not more than its capacity.
        unsafe { frame.set_len(length) };
        Ok(())
    }

    fn refer_to(&mut self, dictionary: Option<&Packing>) -> Result<(), Error> {
        let dictionary = dictionary.map_or(ptr::null(), Packing::as_ptr);
        // SAFETY: both are live, or the dictionary is null, which means none. `pack` replaces the reference by none
        // before it returns, or by another one at the start of the next call, and does not use it in between.
        checked(unsafe { ZSTD_CCtx_refCDict(self.0.as_ptr(), dictionary) }).map(drop)
    }

    /// The bytes of memory that this takes.
    pub fn held_bytes(&self) -> usize {
        // SAFETY: the pointer is to a live context, which is only read.
        unsafe { ZSTD_sizeof_CCtx(self.0.as_ptr()) }
    }
}

impl Unpacker {
    /// A context for unpacking.
    ///
    /// # Errors
    ///
    /// When memory is exhausted.
    pub fn new() -> Result<Self, Error> {
        // SAFETY: no preconditions.
        let context = unsafe { ZSTD_createDCtx() };
        let unpacker = Self(NonNull::new(context).ok_or(Error("no memory for a context"))?);
        let magicless = ZSTD_format_e::ZSTD_f_zstd1_magicless as i32;
        // SAFETY: the pointer is to a live context that nothing else refers to; ZSTD_d_format takes a number.
        checked(unsafe {
            ZSTD_DCtx_setParameter(unpacker.0.as_ptr(), ZSTD_dParameter::ZSTD_d_experimentalParam1, magicless)
        })?;
        Ok(unpacker)
    }

    /// Returns the `length` bytes that were packed into `frame`. Allocates no more than that, whatever the frame claims.
    ///
    /// # Errors
    ///
    /// When the frame was not made of `length` bytes with this dictionary, or with one whose content is a suffix of
    /// this dictionary's. A wrong dictionary may go unnoticed.
    pub fn unpack(
        &mut self,
        frame: &[u8],
        dictionary: Option<&Unpacking>,
        length: usize,
    ) -> Result<Vec<u8>, Error> {
        let mut bytes: Vec<u8> = Vec::with_capacity(length);
        let dictionary = dictionary.map_or(ptr::null(), Unpacking::as_ptr);
        // SAFETY: the context is live, and `&mut self` proves that it has no other user; the dictionary is null, which
        // means none, or borrowed until this function ends, and the context does not use it after that. The buffer has
        // `length` bytes, and `frame` is a live slice.
        let unpacked = unsafe {
            ZSTD_decompress_usingDDict(
                self.0.as_ptr(),
                bytes.as_mut_ptr().cast::<c_void>(),
                length,
                frame.as_ptr().cast::<c_void>(),
                frame.len(),
                dictionary,
            )
        };
        if checked(unpacked)? != length {
            return Err(Error("the frame holds another number of bytes"));
        }
        // SAFETY: zstd wrote `length` bytes into the buffer, which has that capacity.
        unsafe { bytes.set_len(length) };
        Ok(bytes)
    }

    /// The bytes of memory that this takes.
    pub fn held_bytes(&self) -> usize {
        // SAFETY: the pointer is to a live context, which is only read.
        unsafe { ZSTD_sizeof_DCtx(self.0.as_ptr()) }
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        // SAFETY: it is freed once only, and this is its last use.
        let _ = unsafe { ZSTD_freeCCtx(self.0.as_ptr()) };
    }
}

impl Drop for Unpacker {
    fn drop(&mut self) {
        // SAFETY: it is freed once only, and this is its last use.
        let _ = unsafe { ZSTD_freeDCtx(self.0.as_ptr()) };
    }
}

// SAFETY: a context belongs to no thread; its only owner may use it.
unsafe impl Send for Packer {}
// SAFETY: as for `Packer`.
unsafe impl Send for Unpacker {}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Packer")
    }
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unpacker")
    }
}
