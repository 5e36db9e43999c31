//! Reads only an object's metadata, in one pass that stops as soon as it has all of it.
//!
//! Other members are not validated here, apart from strings and brackets in those that are skipped. Validation happens when
//! the object is first decoded (design D3). Of a duplicate member, which no API server sends, the first one counts.

use std::borrow::Cow;
use std::fmt;
use std::ops::{ControlFlow, Range};

use super::cursor::{Cursor, Fault, Members};
use super::event_type::EventType;
use crate::{Labels, ObjectKey, ResourceVersion, Uid};

/// An object with undecodable metadata. Never holds any of the object's content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} (byte {at})")]
pub struct ScanError {
    what: &'static str,
    at: usize,
    key: Option<ObjectKey>,
    event: Option<EventType>,
}

impl ScanError {
    pub(super) fn new(fault: Fault, key: Option<ObjectKey>) -> Self {
        Self { what: fault.what, at: fault.at, key, event: None }
    }

    pub(super) fn of_event(self, event: Option<EventType>) -> Self {
        Self { event, ..self }
    }

    /// The undecodable object, if at least its namespace and name decode.
    pub fn key(&self) -> Option<&ObjectKey> {
        self.key.as_ref()
    }

    /// The type of the undecodable watch event, if at least that decodes.
    pub fn event(&self) -> Option<EventType> {
        self.event
    }

    /// The offset of the error in the object's bytes.
    pub fn offset(&self) -> usize {
        self.at
    }
}

impl From<Fault> for ScanError {
    fn from(fault: Fault) -> Self {
        Self::new(fault, None)
    }
}

/// The metadata of one object, mostly borrowed from its JSON.
#[derive(Clone)]
pub struct ScannedObject<'a> {
    name: Cow<'a, str>,
    namespace: Option<Cow<'a, str>>,
    uid: Option<Cow<'a, str>>,
    resource_version: Option<Cow<'a, str>>,
    labels: Option<Cursor<'a>>,
    kind: Option<Cow<'a, str>>,
    api_version: Option<Cow<'a, str>>,
    stopped_at: Cursor<'a>,
    /// Whether the scan stopped before the end of the metadata.
    in_metadata: bool,
}

/// An object's `kind` and `apiVersion`. Items of built-in lists have neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeMeta<'a> {
    /// Such as `Deployment`.
    pub kind: Option<Cow<'a, str>>,
    /// Such as `apps/v1`.
    pub api_version: Option<Cow<'a, str>>,
}

/// Reads the metadata of one object.
///
/// ```
/// use informer_core::wire;
///
/// let json = br#"{"metadata":{"name":"cart","namespace":"shop","resourceVersion":"7"},"spec":{}}"#;
/// let scanned = wire::scan_object(json)?;
/// assert_eq!(scanned.key()?.as_str(), "shop/cart");
/// assert_eq!(scanned.resource_version(), "7".into());
///
/// let object = scanned.into_object_of(json, "v1", "Pod")?;
/// assert!(object.json().unwrap().starts_with(br#"{"kind":"Pod","apiVersion":"v1","metadata":{"#));
/// # Ok::<(), informer_core::wire::ScanError>(())
/// ```
///
/// # Errors
///
/// When the bytes are not an object, have no metadata or no name, or are malformed in the part that is read.
pub fn scan_object(json: &[u8]) -> Result<ScannedObject<'_>, ScanError> {
    let mut found = Metadata::default();
    let mut types = TypeMeta { kind: None, api_version: None };
    let mut cursor = Cursor::new(json);
    let mut object = cursor.enter_object()?;
    let in_metadata = loop {
        let Some(member) = cursor.next_member(&mut object)? else {
            return Err(Fault { what: "the object has no metadata", at: cursor.at() }.into());
        };
        if &*member.bytes() == b"metadata" {
            break found.read(&mut cursor)?.is_break();
        }
        types.read(&member.bytes(), &mut cursor)?;
    };
    let Some(name) = found.name.filter(|name| !name.is_empty()) else {
        let nameless = Fault { what: "the object has no name", at: cursor.at() };
        return Err(found.fault.unwrap_or(nameless).into());
    };
    let scanned = ScannedObject {
        name,
        namespace: found.namespace,
        uid: found.uid,
        resource_version: found.resource_version,
        labels: found.labels,
        kind: types.kind,
        api_version: types.api_version,
        stopped_at: cursor,
        in_metadata,
    };
    match found.fault {
        None => Ok(scanned),
        Some(fault) => Err(scanned.concerning(fault)),
    }
}

/// The key of an object from its beginning. An object without a namespace has no key before its metadata has ended, because
/// the namespace may follow.
pub(super) fn key_of_part(json: &[u8]) -> Option<ObjectKey> {
    scan_object(json).ok()?.key().ok()
}

impl<'a> TypeMeta<'a> {
    fn read(&mut self, name: &[u8], cursor: &mut Cursor<'a>) -> Result<(), Fault> {
        match name {
            b"kind" if self.kind.is_none() => self.kind = Some(cursor.text()?.decode()?),
            b"apiVersion" if self.api_version.is_none() => self.api_version = Some(cursor.text()?.decode()?),
            _ => drop(cursor.skip_value()?),
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.kind.is_some() && self.api_version.is_some()
    }
}

#[derive(Default)]
struct Metadata<'a> {
    name: Option<Cow<'a, str>>,
    namespace: Option<Cow<'a, str>>,
    uid: Option<Cow<'a, str>>,
    resource_version: Option<Cow<'a, str>>,
    labels: Option<Cursor<'a>>,
    /// The first value that has the wrong type and was skipped.
    fault: Option<Fault>,
}

impl<'a> Metadata<'a> {
    /// Reads to the end of the metadata, or breaks off when it has found all members.
    fn read(&mut self, cursor: &mut Cursor<'a>) -> Result<ControlFlow<()>, Fault> {
        let mut metadata = cursor.enter_object()?;
        while let Some(member) = cursor.next_member(&mut metadata)? {
            match &*member.bytes() {
                b"name" if self.name.is_none() => self.name = cursor.text_or_null()?,
                b"namespace" if self.namespace.is_none() => self.namespace = cursor.text_or_null()?,
                b"uid" if self.uid.is_none() => self.uid = self.text_or_fault(cursor)?,
                b"resourceVersion" if self.resource_version.is_none() => {
                    self.resource_version = self.text_or_fault(cursor)?;
                }
                b"labels" if self.labels.is_none() => {
                    self.labels = Some(*cursor);
                    cursor.skip_value()?;
                }
                _ => drop(cursor.skip_value()?),
            }
            if self.is_complete() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Notes a value that is not a string and continues, so that the error can name the object.
    fn text_or_fault(&mut self, cursor: &mut Cursor<'a>) -> Result<Option<Cow<'a, str>>, Fault> {
        let value = *cursor;
        cursor.text_or_null().or_else(|fault| {
            self.fault.get_or_insert(fault);
            *cursor = value;
            cursor.skip_value().map(|_| None)
        })
    }

    fn is_complete(&self) -> bool {
        self.name.is_some()
            && self.namespace.is_some()
            && self.uid.is_some()
            && self.resource_version.is_some()
            && self.labels.is_some()
    }
}

impl<'a> ScannedObject<'a> {
    /// The name, which is not empty.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace, or `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|namespace| !namespace.is_empty())
    }

    /// Namespace and name.
    ///
    /// # Errors
    ///
    /// When they are not a valid key.
    pub fn key(&self) -> Result<ObjectKey, ScanError> {
        ObjectKey::new(self.namespace(), &self.name).map_err(|_| ScanError {
            what: "the name or the namespace contains `/`",
            at: self.stopped_at.at(),
            key: None,
            event: None,
        })
    }

    /// The incarnation of the key; unset if the object has none.
    pub fn uid(&self) -> Uid {
        Uid::new(self.uid_text())
    }

    /// The incarnation of the key as the server wrote it; empty if the object has none.
    pub fn uid_text(&self) -> &str {
        self.uid.as_deref().unwrap_or_default()
    }

    /// The version of this state; unset if the object has none.
    pub fn resource_version(&self) -> ResourceVersion {
        ResourceVersion::new(self.resource_version.as_deref().unwrap_or_default())
    }

    /// The labels, which are decoded by this call.
    ///
    /// # Errors
    ///
    /// When a label's key or value is not a string.
    pub fn labels(&self) -> Result<Labels, ScanError> {
        let Some(mut cursor) = self.labels else { return Ok(Labels::default()) };
        read_labels(&mut cursor).map_err(|fault| self.concerning(fault))
    }

    /// The object's own `kind` and `apiVersion`. If they do not precede the metadata, this also looks for them after it.
    ///
    /// # Errors
    ///
    /// When they are not strings, or the object ends early.
    pub fn type_meta(&self) -> Result<TypeMeta<'a>, ScanError> {
        let mut types = TypeMeta { kind: self.kind.clone(), api_version: self.api_version.clone() };
        if types.is_complete() {
            return Ok(types);
        }
        self.read_types_behind(&mut types).map_err(|fault| self.concerning(fault))?;
        Ok(types)
    }

    fn read_types_behind(&self, types: &mut TypeMeta<'a>) -> Result<(), Fault> {
        let mut cursor = self.stopped_at;
        if self.in_metadata {
            cursor.leave(1)?;
        }
        let mut object = Members::AFTER_A_VALUE;
        while !types.is_complete() {
            let Some(member) = cursor.next_member(&mut object)? else { break };
            types.read(&member.bytes(), &mut cursor)?;
        }
        Ok(())
    }

    fn concerning(&self, fault: Fault) -> ScanError {
        ScanError::new(fault, self.key().ok())
    }
}

impl fmt::Debug for ScannedObject<'_> {
    /// Names the version; the rest is never printed, it may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespace = self.namespace().unwrap_or_default();
        write!(f, "{namespace}/{}@{}", self.name, self.resource_version.as_deref().unwrap_or_default())
    }
}

fn read_labels(cursor: &mut Cursor<'_>) -> Result<Labels, Fault> {
    if cursor.pass_null() {
        return Ok(Labels::default());
    }
    let mut pairs = Vec::new();
    let mut labels = cursor.enter_object()?;
    while let Some(label) = cursor.next_member(&mut labels)? {
        pairs.push((label.decode()?, cursor.text_or_null()?.unwrap_or_default()));
    }
    Ok(Labels::new(pairs.iter().map(|(name, value)| (&**name, &**value))))
}

/// A bookmark event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bookmark {
    /// The version that the stream has reached.
    pub resource_version: ResourceVersion,
    /// Whether it ends the initial events of a streaming list.
    pub initial_events_end: bool,
}

/// Reads a bookmark event's object.
///
/// ```
/// use informer_core::internals::scan_bookmark;
///
/// let bookmark = scan_bookmark(br#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"12746",
///     "annotations":{"k8s.io/initial-events-end":"true"}}}"#)?;
/// assert!(bookmark.initial_events_end);
/// assert_eq!(bookmark.resource_version, "12746".into());
/// # Ok::<(), informer_core::wire::ScanError>(())
/// ```
///
/// # Errors
///
/// When it is not an object with metadata, or has no resourceVersion.
pub fn scan_bookmark(json: &[u8]) -> Result<Bookmark, ScanError> {
    let mut resource_version = None;
    let mut initial_events_end = false;
    let mut cursor = Cursor::new(json);
    let mut metadata = enter_metadata(&mut cursor)?;
    while let Some(member) = cursor.next_member(&mut metadata)? {
        match &*member.bytes() {
            b"resourceVersion" if resource_version.is_none() => resource_version = cursor.text_or_null()?,
            b"annotations" if cursor.peek() == Some(b'{') => {
                let mut annotations = cursor.enter_object()?;
                while let Some(annotation) = cursor.next_member(&mut annotations)? {
                    let value = cursor.skip_value()?;
                    // Only the value `true` counts (contract S2).
                    initial_events_end |=
                        *annotation.bytes() == *b"k8s.io/initial-events-end" && value == br#""true""#;
                }
            }
            _ => drop(cursor.skip_value()?),
        }
    }
    match resource_version {
        Some(version) if !version.is_empty() => {
            Ok(Bookmark { resource_version: ResourceVersion::new(&version), initial_events_end })
        }
        _ => Err(Fault { what: "the bookmark has no resourceVersion", at: cursor.at() }.into()),
    }
}

pub(super) fn enter_metadata(cursor: &mut Cursor<'_>) -> Result<Members, Fault> {
    let mut object = cursor.enter_object()?;
    while let Some(member) = cursor.next_member(&mut object)? {
        if *member.bytes() == *b"metadata" {
            return cursor.enter_object();
        }
        cursor.skip_value()?;
    }
    Err(Fault { what: "the object has no metadata", at: cursor.at() })
}

/// The range of an object's managed fields: the member with one of its adjacent commas, so that the rest is still a valid
/// object. `None` if the object has none, or is malformed before them.
pub fn managed_fields_span(json: &[u8]) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(json);
    let mut metadata = enter_metadata(&mut cursor).ok()?;
    let mut previous = None;
    while let Some(member) = cursor.next_member(&mut metadata).ok()? {
        cursor.skip_value().ok()?;
        let end = cursor.at();
        if *member.bytes() != *b"managedFields" {
            previous = Some(end);
            continue;
        }
        return Some(match previous {
            Some(previous) => previous..end,
            None if cursor.pass(b',') => member.start()..cursor.at(),
            None => member.start()..end,
        });
    }
    None
}

/// An object without its managed fields, which are half of the bytes that a typed decode would have to read.
///
/// ```
/// use informer_core::wire;
///
/// let json = br#"{"metadata":{"name":"cart","managedFields":[{"manager":"kubectl"}]},"spec":{}}"#;
/// assert_eq!(*wire::without_managed_fields(json), *br#"{"metadata":{"name":"cart"},"spec":{}}"#);
/// ```
pub fn without_managed_fields(json: &[u8]) -> Cow<'_, [u8]> {
    let Some((before, after)) =
        managed_fields_span(json).and_then(|span| Some((json.get(..span.start)?, json.get(span.end..)?)))
    else {
        return Cow::Borrowed(json);
    };
    Cow::Owned([before, after].concat())
}

#[cfg(test)]
mod tests;
