//! Writes a saved cache.

use std::io::{self, Write};

use zstd::stream::write::Encoder;

use super::{FORMAT, LONGEST_TEXT, MAGIC, SaveError, WINDOW_LOG};
use crate::store::SourcePoint;
use crate::{Encoding, Object, Scope};

/// The next record is an object, or the end.
pub(super) const OBJECT: u8 = 1;
pub(super) const END: u8 = 0;
/// The scope of a source.
pub(super) const ALL: u8 = 0;
pub(super) const NAMESPACE: u8 = 1;

/// Objects of one resource resemble each other, so that the fastest level compresses nearly as well as others.
const LEVEL: i32 = 1;

pub(super) struct Output<W: Write> {
    frame: Encoder<'static, Summed<W>>,
}

impl<W: Write> Output<W> {
    pub(super) fn begin(output: W) -> io::Result<Self> {
        let mut output = Summed { output, sum: crc32fast::Hasher::new() };
        output.write_all(MAGIC)?;
        output.write_all(&FORMAT.to_le_bytes())?;
        let mut frame = Encoder::new(output, LEVEL)?;
        frame.window_log(WINDOW_LOG)?;
        Ok(Self { frame })
    }

    pub(super) fn count(&mut self, count: usize) -> io::Result<()> {
        self.number(count as u64)
    }

    pub(super) fn number(&mut self, number: u64) -> io::Result<()> {
        self.frame.write_all(&number.to_le_bytes())
    }

    pub(super) fn text(&mut self, text: &str) -> Result<(), SaveError> {
        if text.len() > LONGEST_TEXT {
            return Err(SaveError::too_long("description"));
        }
        self.bytes(text.as_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), SaveError> {
        let length = u32::try_from(bytes.len()).map_err(|_| SaveError::too_long("object"))?;
        self.frame.write_all(&length.to_le_bytes())?;
        Ok(self.frame.write_all(bytes)?)
    }

    pub(super) fn source(&mut self, source: &SourcePoint) -> Result<(), SaveError> {
        match &source.scope {
            Scope::All => self.frame.write_all(&[ALL])?,
            Scope::Namespace(namespace) => {
                self.frame.write_all(&[NAMESPACE])?;
                self.text(namespace)?;
            }
        }
        self.text(&source.resource_version.to_string())?;
        Ok(self.frame.write_all(&[source.has_unread.into()])?)
    }

    pub(super) fn object(&mut self, object: &Object) -> Result<(), SaveError> {
        self.frame.write_all(&[OBJECT])?;
        self.text(&encoding_name(object.encoding()))?;
        self.number(object.content().to_saved())?;
        self.bytes(&object.bytes()?)
    }

    pub(super) fn end(mut self, objects: usize) -> io::Result<()> {
        self.frame.write_all(&[END])?;
        self.count(objects)?;
        let Summed { mut output, sum } = self.frame.finish()?;
        output.write_all(&sum.finalize().to_le_bytes())?;
        output.flush()
    }
}

/// The encoding as text, so that a program that does not support it can name it in its error.
fn encoding_name(encoding: Encoding) -> String {
    match encoding {
        Encoding::Json => "json".to_owned(),
        Encoding::Protobuf(kind) => format!("protobuf {} {}", kind.api_version(), kind.kind()),
    }
}

/// Computes the checksum of all bytes that are written.
struct Summed<W> {
    output: W,
    sum: crc32fast::Hasher,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.output.write(bytes)?;
        self.sum.update(bytes.get(..written).unwrap_or(bytes));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}
