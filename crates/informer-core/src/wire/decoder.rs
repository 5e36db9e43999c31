//! The common part of the decoders of lists and watches: the window, the limits, and the error that ends a body.

use std::fmt;

use super::WireError;
use super::error::WireErrorKind;
use super::window::Window;

/// Limits on what is accepted from a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest item of a list, or event of a watch, in bytes.
    pub item_bytes: usize,
}

impl Default for Limits {
    /// Items of up to 16 MiB, which is ten times what a server stores.
    fn default() -> Self {
        Self { item_bytes: 16 << 20 }
    }
}

/// The encoding of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// `application/json`
    Json,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
}

/// Takes the body of a response in chunks of any size, and returns its parts one by one.
///
/// It holds no more than the chunk and one incomplete part. `F` is the framing: [`ListDecoder`](super::ListDecoder) or
/// [`WatchDecoder`](super::WatchDecoder), each for both encodings.
pub struct Decoder<F> {
    pub(super) window: Window,
    limits: Limits,
    pub(super) framing: F,
    failed: Option<WireError>,
}

impl<F> Decoder<F> {
    pub(super) fn of(framing: F, limits: Limits) -> Self {
        Self { window: Window::default(), limits, framing, failed: None }
    }

    /// Takes the next chunk of the body.
    pub fn push(&mut self, chunk: &[u8]) {
        self.window.push(chunk);
    }

    /// The bytes that the decoder holds.
    pub fn held_bytes(&self) -> usize {
        self.window.capacity()
    }

    #[inline]
    /// Looks for the next part within the limit. An error is for good, except that of a skipped item.
    pub(super) fn find<T>(
        &mut self,
        find: impl FnOnce(&mut F, &mut Window, usize) -> Result<Option<T>, WireErrorKind>,
    ) -> Result<Option<T>, WireError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let found = match self.window.skip_rest() {
            Ok(true) => find(&mut self.framing, &mut self.window, self.limits.item_bytes),
            Ok(false) => Ok(None),
            Err(cause) => Err(cause),
        };
        match found {
            Ok(found) => {
                if found.is_none() {
                    self.window.relax();
                }
                Ok(found)
            }
            Err(cause) => Err(self.fail(cause)),
        }
    }

    #[cold]
    fn fail(&mut self, cause: WireErrorKind) -> WireError {
        match cause {
            WireErrorKind::Skipped { .. } => cause.into(),
            cause => self.failed.insert(cause.into()).clone(),
        }
    }

    /// Ends the body. One that is not complete is truncated, unless it failed before.
    pub(super) fn end(&mut self, is_complete: bool) -> Result<(), WireError> {
        if !is_complete && self.failed.is_none() {
            self.failed = Some(self.truncated());
        }
        self.failed.clone().map_or(Ok(()), Err)
    }

    pub(super) fn truncated(&self) -> WireError {
        WireErrorKind::Truncated { at: self.window.received() }.into()
    }
}

impl<F: fmt::Debug> fmt::Debug for Decoder<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decoder({:?}, {:?})", self.framing, self.window)
    }
}
