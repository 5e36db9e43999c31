//! Errors of saving and loading.

use std::io;

use crate::DecodeError;

/// A cache that was not written completely.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SaveError(#[from] SaveErrorKind);

#[derive(Debug, thiserror::Error)]
enum SaveErrorKind {
    #[error("the cache cannot be written")]
    Io(#[source] io::Error),
    #[error(transparent)]
    Object(DecodeError),
    #[error("the {0} is too long to be saved")]
    TooLong(&'static str),
}

impl SaveError {
    pub(super) fn too_long(what: &'static str) -> Self {
        SaveErrorKind::TooLong(what).into()
    }
}

impl From<io::Error> for SaveError {
    fn from(error: io::Error) -> Self {
        SaveErrorKind::Io(error).into()
    }
}

impl From<DecodeError> for SaveError {
    fn from(error: DecodeError) -> Self {
        SaveErrorKind::Object(error).into()
    }
}

/// Bytes that are not the requested saved cache. Never holds any content of an object.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct LoadError(#[from] LoadErrorKind);

#[derive(Debug, thiserror::Error)]
enum LoadErrorKind {
    #[error("the saved cache cannot be read")]
    Io(#[source] io::Error),
    #[error("this is not a saved cache")]
    Foreign,
    #[error("the saved cache has format {0}, which this program does not support")]
    Format(u32),
    #[error("the saved cache is damaged: {0}")]
    Damaged(&'static str),
    #[error("the saved cache is of another {what}: `{saved}`, not `{wanted}`")]
    OfAnother { what: &'static str, saved: String, wanted: String },
    #[error("the saved cache has objects as `{0}`, which this program does not support")]
    Encoding(String),
}

impl LoadError {
    /// Whether a read failed. The file itself may be good.
    pub fn is_io(&self) -> bool {
        matches!(self.0, LoadErrorKind::Io(_))
    }

    /// Whether the file does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(&self.0, LoadErrorKind::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Whether it is a saved cache that was truncated or changed.
    pub fn is_damaged(&self) -> bool {
        matches!(self.0, LoadErrorKind::Damaged(_))
    }

    /// Whether it is not a saved cache, or has an unsupported format or encoding.
    pub fn is_foreign(&self) -> bool {
        matches!(self.0, LoadErrorKind::Foreign | LoadErrorKind::Format(_) | LoadErrorKind::Encoding(_))
    }

    /// Whether it is a saved cache with another description.
    pub fn is_of_another(&self) -> bool {
        matches!(self.0, LoadErrorKind::OfAnother { .. })
    }

    /// The error for a file that could not be opened.
    pub fn io(error: io::Error) -> Self {
        LoadErrorKind::Io(error).into()
    }

    pub(super) fn foreign() -> Self {
        LoadErrorKind::Foreign.into()
    }

    pub(super) fn format(found: u32) -> Self {
        LoadErrorKind::Format(found).into()
    }

    pub(super) fn damaged(what: &'static str) -> Self {
        LoadErrorKind::Damaged(what).into()
    }

    pub(super) fn of_another(what: &'static str, saved: String, wanted: &str) -> Self {
        LoadErrorKind::OfAnother { what, saved, wanted: wanted.to_owned() }.into()
    }

    pub(super) fn encoding(name: String) -> Self {
        LoadErrorKind::Encoding(name).into()
    }
}
