//! Kubernetes objects in protobuf: metadata without a tree, any serde type, or JSON, from the bytes as a server sends them.
//!
//! A server sends the kinds that are built into it as `application/vnd.kubernetes.protobuf` to clients that prefer that. Such
//! bytes are smaller than JSON and quicker to read, but say nothing of the names in them; a constant table of all
//! messages that Kubernetes has, with their names, order and presence in JSON, makes up for it. So whatever can be read
//! from an object's JSON can be read from its protobuf: the types of k8s-openapi, a struct with the five fields that a
//! program has need of, or a [`serde_json::Value`].
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
//! # What is read
//!
//! All kinds of `k8s.io/api`, `apiextensions-apiserver` and `kube-aggregator` ([`Kind::all`]), and the metadata of any other
//! ([`Kind::PARTIAL_OBJECT_METADATA`]). Fields that are not known, as servers newer than [`KUBERNETES`] have
//! them, are passed over.
//!
//! # Bounds
//!
//! No bytes make this crate panic, nest deeper than 127 levels of JSON, or allocate more than what they hold: a length that
//! they claim is compared with what there is. No error quotes the content.

mod de;
mod envelope;
mod error;
mod json;
mod kind;
mod managed_fields;
mod members;
mod metadata;
mod node;
mod number;
mod part;
mod schema;
mod time;
mod walk;
pub mod wire;

use serde::Deserialize;

pub use envelope::{Envelope, open};
pub use error::Error;
pub use kind::Kind;
pub use managed_fields::without_managed_fields;
pub use metadata::{Metadata, scan};

use node::Node;

/// The release of Kubernetes whose messages are known, major and minor. What a newer server has added is passed over.
///
/// ```
/// assert!(informer_protobuf::KUBERNETES >= (1, 36));
/// ```
pub const KUBERNETES: (u32, u32) = schema::KUBERNETES;

/// Reads an object's message as a type, as if from its JSON: `kind` and `apiVersion` included.
///
/// What the type does not declare is passed over by its length. Strings can be borrowed; none has escapes here.
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
    match T::deserialize(Node::whole(kind, raw, false)?) {
        // It may be one of those that no server writes, where what is wrong is given again, and right.
        Err(error) if !error.is_mismatch() => T::deserialize(Node::whole(kind, raw, true)?),
        read => read,
    }
}

/// Writes the JSON that a server would have sent: the same members in the same order, without white space.
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
