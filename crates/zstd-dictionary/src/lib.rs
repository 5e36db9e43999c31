//! Compresses small buffers that resemble each other against a dictionary, with zstd.
//!
//! The usual wrappers lack two functions that caches of such buffers need. One adds the statistics of a few samples to a
//! dictionary of chosen content ([`finalize`]). The other uses one dictionary after another with the same context, attached
//! and never copied ([`Packer`]). This crate provides only these. It is the only crate of the project with `unsafe`; each
//! block says why it is sound.
//!
//! A frame of this crate is as small as zstd can make it: it has no magic number, content size, dictionary number or
//! checksum. The caller stores the content's length and its dictionary beside each frame.
//!
//! ```
//! use zstd_dictionary::{Dictionary, Form, Packer, Unpacker, finalize};
//!
//! let sample = |name| format!(r#"{{"kind":"Lease","metadata":{{"name":"{name}","namespace":"kube-node-lease"}}}}"#);
//! let samples: Vec<String> = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu"].map(sample).into();
//! let content = samples.concat();
//! let samples: Vec<&[u8]> = samples.iter().map(|sample| sample.as_bytes()).collect();
//! let bytes = finalize(content.as_bytes(), &samples)?;
//!
//! let dictionary = Dictionary::new(bytes.into(), Form::Finalized)?;
//! let (packing, unpacking) = (dictionary.packing()?, dictionary.unpacking()?);
//! let text = sample("hen");
//! let mut frame = Vec::new();
//! Packer::new()?.pack(text.as_bytes(), Some(&packing), &mut frame)?;
//! assert!(frame.len() < text.len() / 3);
//! assert_eq!(Unpacker::new()?.unpack(&frame, Some(&unpacking), text.len())?, text.as_bytes());
//! # Ok::<(), zstd_dictionary::Error>(())
//! ```

// Other programs put public handles into their own structs and derive `Debug` for them.
#![warn(missing_debug_implementations)]

mod context;
mod dictionary;

pub use context::{Packer, Unpacker};
pub use dictionary::{Dictionary, Form, MOST_CONTENT, Packing, Unpacking, finalize};

/// An error of zstd. Never holds any of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("zstd: {0}")]
pub struct Error(&'static str);

/// The compression level. Higher ones are slower and, with a dictionary, not smaller.
const LEVEL: i32 = 1;

/// The result of a zstd function that returns a size, or an error code in its place.
fn checked(result: usize) -> Result<usize, Error> {
    // SAFETY: accepts any number.
    let is_error = unsafe { zstd_sys::ZSTD_isError(result) };
    if is_error == 0 { Ok(result) } else { Err(named(result)) }
}

fn named(result: usize) -> Error {
    // SAFETY: accepts any number.
    let name = unsafe { zstd_sys::ZSTD_getErrorName(result) };
    if name.is_null() {
        return Error("unknown error");
    }
    // SAFETY: a name is a static string that ends with a zero.
    let name = unsafe { std::ffi::CStr::from_ptr(name) };
    Error(name.to_str().unwrap_or("unknown error"))
}
