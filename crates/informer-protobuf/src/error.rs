//! Why an object cannot be read. Never holds any of its content, which may be secret.

use std::fmt;

use serde::de::{Expected, Unexpected};

/// Why an object cannot be read: its bytes are wrong, or do not fit the type that they are read as.
///
/// It says where and what was expected, and nothing of the content: that may be secret.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    cause: Cause,
    at: Option<usize>,
    member: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It is no message, or not of that kind.
    Malformed(&'static str),
    /// An envelope holds something else than a message.
    Content,
    /// An object inside of the object is of a kind that is not known.
    UnknownKind,
    TooDeep,
    /// Fields are given twice, or stand between those of a list: it has to be read in the order of JSON.
    Unordered,
    /// JSON that the object carries.
    Json,
    /// The type has need of something else.
    Mismatch {
        expected: String,
        found: &'static str,
    },
    Missing(&'static str),
    /// The type refuses a value, with words that may quote it.
    Refused,
}

impl Error {
    #[cold]
    pub(crate) fn new(cause: Cause, at: usize) -> Self {
        Self(Box::new(Inner { cause, at: Some(at), member: None }))
    }

    #[cold]
    fn of_type(cause: Cause) -> Self {
        Self(Box::new(Inner { cause, at: None, member: None }))
    }

    /// The innermost place counts.
    #[cold]
    pub(crate) fn within(mut self, member: &'static str, at: usize) -> Self {
        self.locate(member, at);
        self
    }

    /// The same in place: a result that is looked at where it is need not be moved, and decoded values can be large.
    #[cold]
    pub(crate) fn locate(&mut self, member: &'static str, at: usize) {
        self.0.member.get_or_insert(member);
        self.0.at.get_or_insert(at);
    }

    /// The bytes are not what a server sends: no type could be read from them.
    pub fn is_malformed(&self) -> bool {
        matches!(self.0.cause, Cause::Malformed(_) | Cause::Content | Cause::TooDeep | Cause::Json)
    }

    /// The object is whole, but is not what the type expects.
    pub fn is_mismatch(&self) -> bool {
        matches!(self.0.cause, Cause::Mismatch { .. } | Cause::Missing(_) | Cause::Refused)
    }

    /// An object inside of it (of a `WatchEvent`, for one) is of a kind that has no message here.
    pub fn is_unknown_kind(&self) -> bool {
        self.0.cause == Cause::UnknownKind
    }

    /// Where in the bytes it is wrong, as far as known.
    pub fn offset(&self) -> Option<usize> {
        self.0.at
    }

    /// The innermost member of the object that is concerned.
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
        match &self.cause {
            Cause::Malformed(what) => f.write_str(what)?,
            Cause::Content => f.write_str("an envelope's content is not protobuf")?,
            Cause::UnknownKind => f.write_str("an object inside is of a kind that is not known")?,
            Cause::TooDeep => f.write_str("the object is nested too deep")?,
            Cause::Unordered => f.write_str("fields are not in the order of a server")?,
            Cause::Json => f.write_str("the object carries invalid JSON")?,
            Cause::Mismatch { expected, found } => write!(f, "{expected} is expected, not {found}")?,
            Cause::Missing(name) => write!(f, "`{name}` is missing")?,
            Cause::Refused => f.write_str("a value is refused by its type")?,
        }
        match (self.member, self.at) {
            (Some(member), Some(at)) => write!(f, " (`{member}`, byte {at})"),
            (None, Some(at)) => write!(f, " (byte {at})"),
            _ => Ok(()),
        }
    }
}

/// Its defaults quote values.
impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::of_type(Cause::Refused)
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::of_type(Cause::Mismatch { expected: expected.to_string(), found: name(&found) })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::of_type(Cause::Mismatch { expected: expected.to_string(), found: "another length" })
    }

    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        let expected = "one of the type's variants".to_owned();
        Self::of_type(Cause::Mismatch { expected, found: "another string" })
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        let expected = "one of the type's members".to_owned();
        Self::of_type(Cause::Mismatch { expected, found: "another one" })
    }

    fn missing_field(field: &'static str) -> Self {
        Self::of_type(Cause::Missing(field))
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
