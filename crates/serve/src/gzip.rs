//! Compression: of a list as one stream, of a watch as many members.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Compresses one stream. Writing to memory does not fail.
pub(crate) struct Gzip(GzEncoder<Vec<u8>>);

impl Gzip {
    /// The fastest level, as the real server has it.
    pub(crate) fn new() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::fast()))
    }

    /// Takes text and returns what of its compressed form is ready.
    pub(crate) fn write(&mut self, text: &[u8]) -> Bytes {
        let _ = self.0.write_all(text);
        Bytes::from(std::mem::take(self.0.get_mut()))
    }

    /// The rest.
    pub(crate) fn finish(self) -> Bytes {
        Bytes::from(self.0.finish().unwrap_or_default())
    }
}

/// A complete member: what a reader can take apart without what follows.
pub(crate) fn member(text: &[u8]) -> Bytes {
    let mut gzip = Gzip::new();
    let mut bytes = gzip.write(text).to_vec();
    bytes.extend_from_slice(&gzip.finish());
    Bytes::from(bytes)
}
