//! Compression: a list as one gzip stream, a watch as many members.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Compresses one stream. Writing to memory cannot fail.
pub(crate) struct Gzip(GzEncoder<Vec<u8>>);

impl Gzip {
    /// Uses the fastest level, like the real server.
    pub(crate) fn new() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::fast()))
    }

    /// Takes text and returns the compressed bytes that are ready.
    pub(crate) fn write(&mut self, text: &[u8]) -> Bytes {
        let _ = self.0.write_all(text);
        Bytes::from(std::mem::take(self.0.get_mut()))
    }

    /// Returns the rest.
    pub(crate) fn finish(self) -> Bytes {
        Bytes::from(self.0.finish().unwrap_or_default())
    }
}

/// A complete member, which a client can decompress without what follows. It is flushed before it ends, as the real
/// server does it: Go's reader gives out the text of a last block only when the next member begins.
pub(crate) fn member(text: &[u8]) -> Bytes {
    let mut gzip = Gzip::new();
    let mut bytes = gzip.write(text).to_vec();
    let _ = gzip.0.flush();
    bytes.extend_from_slice(&std::mem::take(gzip.0.get_mut()));
    bytes.extend_from_slice(&gzip.finish());
    Bytes::from(bytes)
}
