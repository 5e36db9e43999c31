//! Why an object is undecodable. An error never holds any of the object's content, which may be secret.

use std::fmt;

use serde::de::{Expected, Unexpected};

/// Why an object is undecodable: its bytes are malformed, or do not fit the type.
///
/// The error names the place and what was expected. It holds no content of the object: that may be secret.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    at: Option<usize>,
    member: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The bytes are no message, or one of another kind.
    Malformed(&'static str),
    /// A string has bytes that are no text. Servers write U+FFFD for each of them in JSON.
    NotUtf8,
    /// The envelope holds something other than a message.
    Content,
    /// An object inside the object is of an unknown kind.
    UnknownKind,
    TooDeep,
    /// A field is repeated, or stands between those of a list: the object must be decoded in the order of JSON.
    Unordered,
    /// The object carries invalid JSON.
    Json,
    /// The type expects something else.
    Mismatch {
        expected: String,
        found: &'static str,
    },
    Missing(&'static str),
    /// The type refuses a value. Its message is dropped, because it may quote the value.
    Refused,
}

impl Error {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, at: usize) -> Self {
        Self(Box::new(Inner { kind, at: Some(at), member: None }))
    }

    #[cold]
    fn of_type(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, at: None, member: None }))
    }

    /// An object that was read from its own JSON: either the type has refused a value of it, or it is too deep.
    #[cold]
    pub(crate) fn refused(by_type: bool) -> Self {
        Self::of_type(if by_type { ErrorKind::Refused } else { ErrorKind::Json })
    }

    /// Adds the place. The innermost place counts.
    #[cold]
    pub(crate) fn within(mut self, member: &'static str, at: usize) -> Self {
        self.locate(member, at);
        self
    }

    /// As `within`, in place: moving a large decoded value in a `Result` costs time.
    #[cold]
    pub(crate) fn locate(&mut self, member: &'static str, at: usize) {
        self.0.member.get_or_insert(member);
        self.0.at.get_or_insert(at);
    }

    /// Whether the bytes are malformed. No type could be decoded from them.
    pub fn is_malformed(&self) -> bool {
        let kind = &self.0.kind;
        matches!(
            kind,
            ErrorKind::Malformed(_)
                | ErrorKind::NotUtf8
                | ErrorKind::Content
                | ErrorKind::TooDeep
                | ErrorKind::Json
        )
    }

    pub(crate) fn is_not_utf8(&self) -> bool {
        self.0.kind == ErrorKind::NotUtf8
    }

    /// Whether the object is well-formed but does not fit the type.
    pub fn is_mismatch(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Mismatch { .. } | ErrorKind::Missing(_) | ErrorKind::Refused)
    }

    /// Whether an object inside it (for example in a `WatchEvent`) is of a kind without a message here.
    pub fn is_unknown_kind(&self) -> bool {
        self.0.kind == ErrorKind::UnknownKind
    }

    /// The offset of the error in the bytes, if known.
    pub fn offset(&self) -> Option<usize> {
        self.0.at
    }

    /// The innermost member that the error concerns.
    pub fn member(&self) -> Option<&'static str> {
        self.0.member
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({})", self.0)
    }
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ErrorKind::Malformed(what) => f.write_str(what)?,
            ErrorKind::NotUtf8 => f.write_str("a string is not UTF-8")?,
            ErrorKind::Content => f.write_str("the envelope does not hold protobuf")?,
            ErrorKind::UnknownKind => f.write_str("an inner object is of an unknown kind")?,
            ErrorKind::TooDeep => f.write_str("the object is nested too deep")?,
            ErrorKind::Unordered => f.write_str("fields are not in the order that servers write")?,
            ErrorKind::Json => f.write_str("the object carries invalid JSON")?,
            ErrorKind::Mismatch { expected, found } => write!(f, "expected {expected}, found {found}")?,
            ErrorKind::Missing(name) => write!(f, "`{name}` is missing")?,
            ErrorKind::Refused => f.write_str("the type refuses a value")?,
        }
        match (self.member, self.at) {
            (Some(member), Some(at)) => write!(f, " (`{member}`, byte {at})"),
            (None, Some(at)) => write!(f, " (byte {at})"),
            _ => Ok(()),
        }
    }
}

/// serde's default implementations quote values; these do not.
impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::of_type(ErrorKind::Refused)
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::of_type(ErrorKind::Mismatch { expected: expected.to_string(), found: name(&found) })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::of_type(ErrorKind::Mismatch { expected: expected.to_string(), found: "another length" })
    }

    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        let expected = "one of the type's variants".to_owned();
        Self::of_type(ErrorKind::Mismatch { expected, found: "another string" })
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        let expected = "one of the type's members".to_owned();
        Self::of_type(ErrorKind::Mismatch { expected, found: "another one" })
    }

    fn missing_field(field: &'static str) -> Self {
        Self::of_type(ErrorKind::Missing(field))
    }
}

fn name(found: &Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "an integer",
        Unexpected::Float(_) => "a number",
        Unexpected::Char(_) | Unexpected::Str(_) => "a string",
        Unexpected::Bytes(_) => "bytes",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "a list",
        Unexpected::Map => "an object",
        _ => "something else",
    }
}
