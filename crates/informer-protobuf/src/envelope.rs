//! The envelope around an object: four magic bytes and a `runtime.Unknown`.
//!
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding>

use std::fmt;

use crate::error::{Error, ErrorKind};
use crate::part::Part;
use crate::wire::{Fields, Value};

/// The first bytes of an envelope.
pub(crate) const MAGIC: &[u8] = b"k8s\0";

const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// An opened envelope: the kind of an object, and its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// `apps/v1`.
    pub api_version: &'a str,
    /// `Deployment`.
    pub kind: &'a str,
    /// The object's message.
    pub raw: &'a [u8],
}

/// The object's bytes are not shown.
impl fmt::Debug for Envelope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { api_version, kind, raw } = self;
        write!(f, "Envelope({api_version} {kind}, {} bytes)", raw.len())
    }
}

/// Opens an envelope.
///
/// ```
/// let bytes = b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x00";
/// let envelope = informer_protobuf::open(bytes)?;
/// assert_eq!((envelope.api_version, envelope.kind, envelope.raw.len()), ("v1", "Pod", 0));
/// # Ok::<(), informer_protobuf::Error>(())
/// ```
///
/// # Errors
///
/// The bytes are no envelope, or the envelope holds something other than a message.
pub fn open(bytes: &[u8]) -> Result<Envelope<'_>, Error> {
    let opened = open_part(Part::whole(bytes)?)?;
    Ok(Envelope { api_version: opened.api_version, kind: opened.kind, raw: opened.raw.bytes })
}

pub(crate) struct Opened<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) raw: Part<'a>,
}

pub(crate) fn open_part(envelope: Part<'_>) -> Result<Opened<'_>, Error> {
    let Some(unknown) = envelope.bytes.strip_prefix(MAGIC) else {
        return Err(envelope.malformed("expected an envelope"));
    };
    let unknown = envelope.inner(unknown, MAGIC.len());
    let mut opened = Opened { api_version: "", kind: "", raw: unknown.inner(&[], 0) };
    let mut fields = Fields::new(unknown.bytes);
    while let Some(field) = fields.next() {
        let field = field.map_err(|error| unknown.wire(error))?;
        let Value::Bytes(bytes) = field.value else { continue };
        let part = unknown.inner(bytes, fields.offset() - bytes.len());
        match field.number {
            1 => (opened.api_version, opened.kind) = type_meta(part)?,
            2 => opened.raw = part,
            3 if !bytes.is_empty() => return Err(Error::new(ErrorKind::Content, part.base)),
            4 if !bytes.is_empty() && bytes != CONTENT_TYPE.as_bytes() => {
                return Err(Error::new(ErrorKind::Content, part.base));
            }
            _ => {}
        }
    }
    Ok(opened)
}

fn type_meta(part: Part<'_>) -> Result<(&str, &str), Error> {
    let (mut api_version, mut kind) = ("", "");
    for field in Fields::new(part.bytes) {
        let field = field.map_err(|error| part.wire(error))?;
        let Value::Bytes(bytes) = field.value else { continue };
        match field.number {
            1 => api_version = part.inner(bytes, 0).text()?,
            2 => kind = part.inner(bytes, 0).text()?,
            _ => {}
        }
    }
    Ok((api_version, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_envelope_is_refused() {
        for bytes in [&b""[..], b"k8s", b"{}", b"k8s\0\x0a", b"k8s\0\x0a\x03\x0a\x01\xff"] {
            assert!(open(bytes).unwrap_err().is_malformed(), "{bytes:?}");
        }
    }

    #[test]
    fn what_is_around_something_else_is_refused() {
        let gzip = b"k8s\0\x12\x00\x1a\x04gzip";
        let json = b"k8s\0\x12\x00\x22\x10application/json";
        for bytes in [&gzip[..], json] {
            assert_eq!(open(bytes).unwrap_err().to_string(), "the envelope does not hold protobuf (byte 8)");
        }
    }

    #[test]
    fn a_debugged_envelope_keeps_its_content() {
        let envelope = Envelope { api_version: "v1", kind: "Secret", raw: b"secret" };
        assert_eq!(format!("{envelope:?}"), "Envelope(v1 Secret, 6 bytes)");
    }
}
