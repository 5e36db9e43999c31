//! Scans an object's metadata from its message, without decoding the rest.

use std::borrow::Cow;
use std::fmt;

use crate::error::Error;
use crate::part::{Part, replaced};
use crate::wire::{Field, Fields, Value};

/// Field numbers of `ObjectMeta`, in `k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto`.
mod field {
    pub(super) const NAME: u32 = 1;
    pub(super) const NAMESPACE: u32 = 3;
    pub(super) const UID: u32 = 5;
    pub(super) const RESOURCE_VERSION: u32 = 6;
    pub(super) const LABELS: u32 = 11;
    pub(super) const ANNOTATIONS: u32 = 12;
    pub(super) const OWNER_REFERENCES: u32 = 13;
}

/// Field numbers of `OwnerReference`, in the same file.
mod owner {
    pub(super) const KIND: u32 = 1;
    pub(super) const NAME: u32 = 3;
    pub(super) const UID: u32 = 4;
    pub(super) const API_VERSION: u32 = 5;
    pub(super) const CONTROLLER: u32 = 6;
}

/// The field number in a whole object of any kind.
const METADATA: u32 = 1;

/// The metadata that identifies a version of an object; a missing string is empty.
#[derive(Clone, Copy)]
pub struct Metadata<'a> {
    /// The object's name.
    pub name: &'a str,
    /// Its namespace; empty for cluster-wide kinds.
    pub namespace: &'a str,
    /// Its unique id.
    pub uid: &'a str,
    /// Its resourceVersion.
    pub resource_version: &'a str,
    part: Part<'a>,
    /// The offset of the fields that were not scanned.
    rest: usize,
}

/// The owner that an owner reference names; a missing string is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Owner<'a> {
    /// Its group and version.
    pub api_version: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its unique id.
    pub uid: &'a str,
}

impl<'a> Metadata<'a> {
    /// Its labels, in the order of the message, which servers sort. Bytes that are not UTF-8 are given as U+FFFD each.
    ///
    /// # Errors
    ///
    /// A label is malformed.
    pub fn labels(&self) -> impl Iterator<Item = Result<(Cow<'a, str>, Cow<'a, str>), Error>> + use<'a> {
        self.entries(field::LABELS)
    }

    /// Its annotations, in the order of the message.
    ///
    /// # Errors
    ///
    /// An annotation is malformed.
    pub fn annotations(&self) -> impl Iterator<Item = Result<(Cow<'a, str>, Cow<'a, str>), Error>> + use<'a> {
        self.entries(field::ANNOTATIONS)
    }

    /// The annotation of that name. `k8s.io/initial-events-end` marks the end of a streaming list's initial events.
    ///
    /// # Errors
    ///
    /// An annotation before it is malformed.
    pub fn annotation(&self, name: &str) -> Result<Option<Cow<'a, str>>, Error> {
        for entry in self.annotations() {
            let (key, value) = entry?;
            if key == name {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// The owner that controls the object: that of the owner reference with `controller: true`.
    ///
    /// ```
    /// // metadata { name: "a", ownerReferences [{ uid: "6" }, { uid: "7", controller: true }] }
    /// let raw = b"\x0a\x0f\x0a\x01a\x6a\x03\x22\x016\x6a\x05\x22\x017\x30\x01";
    /// assert_eq!(informer_protobuf::scan(raw)?.controller()?.map(|owner| owner.uid), Some("7"));
    /// # Ok::<(), informer_protobuf::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// An owner reference is malformed.
    pub fn controller(&self) -> Result<Option<Owner<'a>>, Error> {
        for field in Fields::from(self.part.bytes, self.rest) {
            let Field { number, value } = field.map_err(|error| self.part.wire(error))?;
            if number != field::OWNER_REFERENCES {
                continue;
            }
            let Value::Bytes(reference) = value else {
                return Err(self.part.malformed("expected an owner reference"));
            };
            if let Some(owner) = owner_if_controller(reference, self.part)? {
                return Ok(Some(owner));
            }
        }
        Ok(None)
    }

    fn entries(
        &self,
        number: u32,
    ) -> impl Iterator<Item = Result<(Cow<'a, str>, Cow<'a, str>), Error>> + use<'a> {
        let part = self.part;
        let fields = Fields::from(part.bytes, self.rest);
        fields.filter_map(move |field| match field {
            Ok(field) if field.number == number => Some(entry(field.value, part)),
            Ok(_) => None,
            Err(error) => Some(Err(part.wire(error))),
        })
    }
}

/// Shows names; labels and annotations are not shown.
impl fmt::Debug for Metadata<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, namespace, uid, resource_version, .. } = self;
        write!(f, "Metadata({namespace}/{name}, {uid}, {resource_version})")
    }
}

/// Scans the metadata of an object from its message: of every kind that is stored (see
/// [`Kind::has_object_metadata`](crate::Kind::has_object_metadata)) and of `PartialObjectMetadata`.
///
/// The scan stops at the first field after those that it needs, because servers write fields in the order of their
/// numbers. Labels and annotations are decoded on demand, `managedFields` and the rest of the object never. Takes about
/// 0.1 us, without an allocation.
///
/// ```
/// // metadata { name: "a", namespace: "b", resourceVersion: "7", labels { "x": "y" } }
/// let raw = b"\x0a\x11\x0a\x01a\x1a\x01b\x32\x017\x5a\x06\x0a\x01x\x12\x01y";
/// let metadata = informer_protobuf::scan(raw)?;
/// assert_eq!((metadata.namespace, metadata.name, metadata.resource_version), ("b", "a", "7"));
/// assert_eq!(metadata.labels().collect::<Result<Vec<_>, _>>()?, [("x".into(), "y".into())]);
/// # Ok::<(), informer_protobuf::Error>(())
/// ```
///
/// # Errors
///
/// The message does not begin with its metadata, or the metadata is malformed.
pub fn scan(raw: &[u8]) -> Result<Metadata<'_>, Error> {
    let whole = Part::whole(raw)?;
    let mut fields = Fields::new(raw);
    let part = match fields.next() {
        Some(Ok(Field { number: METADATA, value: Value::Bytes(bytes) })) => {
            whole.inner(bytes, fields.offset() - bytes.len())
        }
        Some(Err(error)) => return Err(whole.wire(error)),
        Some(Ok(_)) | None => return Err(whole.malformed("expected an object's metadata")),
    };
    let (mut name, mut namespace, mut uid, mut resource_version) = ("", "", "", "");
    let mut fields = Fields::new(part.bytes);
    let rest = loop {
        let at = fields.offset();
        let Some(field) = fields.next() else { break at };
        let Field { number, value } = field.map_err(|error| part.wire(error))?;
        let text = match number {
            field::NAME => &mut name,
            field::NAMESPACE => &mut namespace,
            field::UID => &mut uid,
            field::RESOURCE_VERSION => &mut resource_version,
            number if number > field::RESOURCE_VERSION => break at,
            _ => continue,
        };
        let Value::Bytes(bytes) = value else { return Err(part.inner(&[], at).malformed(NO_TEXT)) };
        *text = part.inner(bytes, fields.offset() - bytes.len()).text()?;
    };
    Ok(Metadata { name, namespace, uid, resource_version, part, rest })
}

const NO_TEXT: &str = "expected a string";

/// The owner that a reference names, if it is the controller.
fn owner_if_controller<'a>(reference: &'a [u8], part: Part<'a>) -> Result<Option<Owner<'a>>, Error> {
    let (mut owner, mut controls) = (Owner::default(), false);
    for field in Fields::new(reference) {
        let (text, bytes) = match field.map_err(|error| part.wire(error))? {
            Field { number: owner::KIND, value: Value::Bytes(bytes) } => (&mut owner.kind, bytes),
            Field { number: owner::NAME, value: Value::Bytes(bytes) } => (&mut owner.name, bytes),
            Field { number: owner::UID, value: Value::Bytes(bytes) } => (&mut owner.uid, bytes),
            Field { number: owner::API_VERSION, value: Value::Bytes(bytes) } => {
                (&mut owner.api_version, bytes)
            }
            Field { number: owner::CONTROLLER, value: Value::Varint(value) } => {
                controls = value != 0;
                continue;
            }
            _ => continue,
        };
        *text = part.inner(bytes, 0).text()?;
    }
    Ok(controls.then_some(owner))
}

/// An entry of a map from strings to strings.
fn entry<'a>(value: Value<'a>, part: Part<'a>) -> Result<(Cow<'a, str>, Cow<'a, str>), Error> {
    let Value::Bytes(entry) = value else { return Err(part.malformed(NO_TEXT)) };
    let (mut key, mut value) = (Cow::Borrowed(""), Cow::Borrowed(""));
    for field in Fields::new(entry) {
        match field.map_err(|error| part.wire(error))? {
            Field { number: 1, value: Value::Bytes(bytes) } => key = replaced(bytes),
            Field { number: 2, value: Value::Bytes(bytes) } => value = replaced(bytes),
            _ => {}
        }
    }
    Ok((key, value))
}
