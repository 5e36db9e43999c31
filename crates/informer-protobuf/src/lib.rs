//! Kubernetes objects in protobuf, decoded from the bytes that a server sends: metadata without a tree, any serde type,
//! or JSON.
//!
//! A server sends built-in kinds as `application/vnd.kubernetes.protobuf` to clients that prefer it. Such bytes are
//! smaller than JSON and faster to decode, but they hold field numbers instead of names. A constant table of all
//! Kubernetes messages supplies the names, their order and their presence in JSON. So a type that deserializes from an
//! object's JSON also deserializes from its protobuf: the types of k8s-openapi, a struct with the five fields that a
//! program needs, or a [`serde_json::Value`].
//!
//! ```
//! use informer_protobuf::{Kind, from_slice, open, scan, to_json};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize)]
//! struct ConfigMap {
//!     data: std::collections::BTreeMap<String, String>,
//! }
//!
//! let bytes = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x11\x0a\x03\x0a\x01a\x12\x0a\x0a\x03key\x12\x03val";
//! let envelope = open(bytes)?;
//! assert_eq!(scan(envelope.raw)?.name, "a");
//!
//! let kind = Kind::of(envelope.api_version, envelope.kind).expect("it is built in");
//! let map: ConfigMap = from_slice(kind, envelope.raw)?;
//! assert_eq!(map.data["key"], "val");
//! assert_eq!(
//!     to_json(kind, envelope.raw)?,
//!     br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"key":"val"}}"#
//! );
//! # Ok::<(), informer_protobuf::Error>(())
//! ```
//!
//! # What it decodes
//!
//! All kinds of `k8s.io/api`, `apiextensions-apiserver` and `kube-aggregator` ([`Kind::all`]), and the metadata of any
//! other ([`Kind::PARTIAL_OBJECT_METADATA`]). Unknown fields, such as those of servers newer than [`KUBERNETES`], are
//! skipped.
//!
//! # Bounds
//!
//! No input makes this crate panic, nest deeper than 127 levels of JSON, or allocate more than the input justifies:
//! each length is checked against the bytes that are left. No error quotes the content.

// A public handle is in the structs of other programs, which want to derive `Debug`.
#![warn(missing_debug_implementations)]

mod de;
mod envelope;
mod error;
mod field;
mod json;
mod kind;
mod managed_fields;
mod members;
mod metadata;
mod node;
mod number;
mod part;
mod schema;
mod starts;
mod time;
mod walk;
pub mod weight;
pub mod wire;

use serde::Deserialize;

pub use envelope::{Envelope, open};
pub use error::Error;
pub use kind::Kind;
pub use managed_fields::without_managed_fields;
pub use metadata::{Metadata, Owner, scan};

use node::Node;

/// The release of Kubernetes that the messages are from, major and minor. Fields that newer servers add are skipped.
///
/// ```
/// assert!(informer_protobuf::KUBERNETES >= (1, 36));
/// ```
pub const KUBERNETES: (u32, u32) = schema::KUBERNETES;

/// Deserializes an object's message as a type, as if from its JSON, `kind` and `apiVersion` included.
///
/// Fields that the type does not declare are skipped by their length. Strings can be borrowed; none has escapes here. Each byte of
/// a string that is not UTF-8 is read as U+FFFD, as it would be from a server's JSON; such a string cannot be borrowed.
///
/// ```
/// use informer_protobuf::{Kind, from_slice};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Named<'a> {
///     kind: &'a str,
///     metadata: Metadata<'a>,
/// }
///
/// #[derive(Deserialize)]
/// struct Metadata<'a> {
///     name: &'a str,
/// }
///
/// let pod = Kind::of("v1", "Pod").unwrap();
/// let named: Named<'_> = from_slice(pod, b"\x0a\x03\x0a\x01a")?;
/// assert_eq!((named.kind, named.metadata.name), ("Pod", "a"));
/// # Ok::<(), informer_protobuf::Error>(())
/// ```
///
/// # Errors
///
/// The message is malformed, or does not fit the type.
pub fn from_slice<'de, T: Deserialize<'de>>(kind: Kind, raw: &'de [u8]) -> Result<T, Error> {
    let before = weight::count();
    let read = match T::deserialize(Node::whole(kind, raw, false)?) {
        // No server writes such a message, but protobuf allows it: a repeated value, of which the last counts and is
        // good.
        Err(error) if !error.is_mismatch() => {
            weight::swap(before);
            T::deserialize(Node::whole(kind, raw, true)?)
        }
        read => read,
    };
    match read {
        Err(error) if error.is_not_utf8() => from_its_json(kind, raw),
        read => read,
    }
}

/// As [`from_slice`], with about how many bytes of the heap the value refers to: its strings, and the elements of its lists
/// and maps, as the standard library's collections keep them.
///
/// # Errors
///
/// As [`from_slice`].
pub fn from_slice_weighed<'de, T: Deserialize<'de>>(kind: Kind, raw: &'de [u8]) -> Result<(T, usize), Error> {
    let before = weight::swap(0);
    let read = from_slice(kind, raw);
    let weighed = weight::swap(before);
    Ok((read?, weighed))
}

/// The long way, for the rare string that is no text: such bytes cannot be lent, and those of JSON are text.
#[cold]
fn from_its_json<'de, T: Deserialize<'de>>(kind: Kind, raw: &[u8]) -> Result<T, Error> {
    let json = to_json(kind, raw)?;
    weight::add(3 * json.len());
    // A deserializer of a reader lends nothing, so that the JSON need not live as long as the message.
    let mut json = serde_json::Deserializer::from_reader(json.as_slice());
    T::deserialize(&mut json).map_err(|error| Error::refused(error.is_data()))
}

/// Writes the JSON that a server would have sent: the same members in the same order, without white space, and U+FFFD for each
/// byte of a string that is not UTF-8.
///
/// # Errors
///
/// The message is malformed.
pub fn to_json(kind: Kind, raw: &[u8]) -> Result<Vec<u8>, Error> {
    // JSON is about half as long again.
    let mut json = Vec::with_capacity(raw.len() + raw.len() / 2);
    json::write(Node::whole(kind, raw, true)?, &mut json)?;
    Ok(json)
}
