//! Contexts: the memory in which packing and unpacking work, reused from one buffer to the next.

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

/// Packs one buffer after another: 90 to 360 KB, more after large buffers.
pub struct Packer(NonNull<ZSTD_CCtx>);

/// Unpacks one buffer after another: 95 KB.
pub struct Unpacker(NonNull<ZSTD_DCtx>);

/// How bytes are written that repeat nothing.
#[derive(Clone, Copy)]
enum Literals {
    AsTheyAre,
    /// In Huffman's code.
    Compressed,
}

impl Packer {
    /// A context for packing.
    ///
    /// # Errors
    ///
    /// When there is no memory.
    pub fn new() -> Result<Self, Error> {
        // SAFETY: needs nothing.
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

    /// Puts what `bytes` compress to into `frame`, in place of what is there.
    ///
    /// What is not in the dictionary stays as it is where that is little: unpacking is four times as fast then.
    ///
    /// # Errors
    ///
    /// When there is no memory.
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
        // Text that the dictionary does not know: base64 shrinks by a quarter, other text by more.
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
        // SAFETY: takes any number.
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
        // SAFETY: the context is live, and `&mut self` says that nobody else uses it; it refers to `dictionary`, which is
        // borrowed until the end of this function. The frame's buffer has `bound` bytes, and `bytes` is a live slice.
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
            // SAFETY: the context is live and not used by anybody else.
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
        // SAFETY: both are live, or the dictionary null, which means none. Whatever is referred to here is replaced by none
        // before `pack` returns, or by another one at the start of the next, and not used in between.
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
    /// When there is no memory.
    pub fn new() -> Result<Self, Error> {
        // SAFETY: needs nothing.
        let context = unsafe { ZSTD_createDCtx() };
        let unpacker = Self(NonNull::new(context).ok_or(Error("no memory for a context"))?);
        let magicless = ZSTD_format_e::ZSTD_f_zstd1_magicless as i32;
        // SAFETY: the pointer is to a live context that nothing else refers to; ZSTD_d_format takes a number.
        checked(unsafe {
            ZSTD_DCtx_setParameter(unpacker.0.as_ptr(), ZSTD_dParameter::ZSTD_d_experimentalParam1, magicless)
        })?;
        Ok(unpacker)
    }

    /// The `length` bytes that were packed into `frame`. Takes no more memory than that, whatever the frame says.
    ///
    /// # Errors
    ///
    /// When the frame is not one that was made of so many bytes with this dictionary, or one that has more content before
    /// the same. A wrong dictionary may go unnoticed.
    pub fn unpack(
        &mut self,
        frame: &[u8],
        dictionary: Option<&Unpacking>,
        length: usize,
    ) -> Result<Vec<u8>, Error> {
        let mut bytes: Vec<u8> = Vec::with_capacity(length);
        let dictionary = dictionary.map_or(ptr::null(), Unpacking::as_ptr);
        // SAFETY: the context is live, and `&mut self` says that nobody else uses it; the dictionary is null, which means
        // none, or borrowed until this function ends, and not used by the context after that. The buffer has `length` bytes,
        // and `frame` is a live slice.
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
            return Err(Error("the frame was made of another number of bytes"));
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
        // SAFETY: nobody else frees it, and this is the last use.
        let _ = unsafe { ZSTD_freeCCtx(self.0.as_ptr()) };
    }
}

impl Drop for Unpacker {
    fn drop(&mut self) {
        // SAFETY: nobody else frees it, and this is the last use.
        let _ = unsafe { ZSTD_freeDCtx(self.0.as_ptr()) };
    }
}

// SAFETY: a context belongs to no thread; whoever has it alone may use it.
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
