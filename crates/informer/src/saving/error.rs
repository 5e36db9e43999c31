//! Errors of saving and loading.

use std::io;

use informer_core::saved;

use crate::options::resource::ResourceType;

/// The identity of the cache is unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unnamed {
    #[error("cache identity unknown: set `FactoryBuilder::server_name`")]
    Server,
    #[error("cache identity unknown: name the transform with `Transform::named`")]
    Transform,
}

/// A cache that was not saved. The previous file is unchanged.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SaveError(SaveErrorKind);

#[derive(Debug, thiserror::Error)]
enum SaveErrorKind {
    #[error(transparent)]
    Unnamed(Unnamed),
    #[error("nothing to save yet: the initial list is not complete")]
    Empty,
    #[error("the file cannot be {what}")]
    File { what: &'static str, source: io::Error },
    #[error(transparent)]
    Content(saved::SaveError),
    #[error("saving was aborted, because its runtime ended or it panicked")]
    GivenUp,
}

impl SaveError {
    /// Whether the initial list is not complete yet.
    pub fn is_empty(&self) -> bool {
        matches!(self.0, SaveErrorKind::Empty)
    }

    /// Whether a name is missing, of the server or of the transform.
    pub fn is_unnamed(&self) -> bool {
        matches!(self.0, SaveErrorKind::Unnamed(_))
    }

    pub(crate) fn empty() -> Self {
        Self(SaveErrorKind::Empty)
    }

    pub(crate) fn given_up() -> Self {
        Self(SaveErrorKind::GivenUp)
    }

    pub(crate) fn file(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self(SaveErrorKind::File { what, source })
    }
}

impl From<saved::SaveError> for SaveError {
    fn from(error: saved::SaveError) -> Self {
        Self(SaveErrorKind::Content(error))
    }
}

impl From<Unnamed> for SaveError {
    fn from(error: Unnamed) -> Self {
        Self(SaveErrorKind::Unnamed(error))
    }
}

/// A cache that was not loaded: the informer is unchanged. Never holds any content of an object.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct LoadError(LoadErrorKind);

#[derive(Debug, thiserror::Error)]
enum LoadErrorKind {
    #[error(transparent)]
    Unnamed(Unnamed),
    #[error("the informer of {0} was started or loaded already; load before the start, once")]
    AlreadyStarted(ResourceType),
    #[error(transparent)]
    Content(saved::LoadError),
    #[error("loading was aborted, because its runtime ended or it panicked")]
    GivenUp,
}

impl LoadError {
    /// Whether the file does not exist, as at the first start.
    pub fn is_not_found(&self) -> bool {
        matches!(&self.0, LoadErrorKind::Content(error) if error.is_not_found())
    }

    /// Whether the file was truncated or changed since it was written.
    pub fn is_damaged(&self) -> bool {
        matches!(&self.0, LoadErrorKind::Content(error) if error.is_damaged())
    }

    /// Whether the file is no saved cache, or one of an unknown format version.
    pub fn is_foreign(&self) -> bool {
        matches!(&self.0, LoadErrorKind::Content(error) if error.is_foreign())
    }

    /// Whether the file is a saved cache of another server, resource, selection or transform. The message names the
    /// difference.
    pub fn is_of_another(&self) -> bool {
        matches!(&self.0, LoadErrorKind::Content(error) if error.is_of_another())
    }

    /// Whether the informer was started or loaded already.
    pub fn is_already_started(&self) -> bool {
        matches!(self.0, LoadErrorKind::AlreadyStarted(_))
    }

    /// Whether a name is missing, of the server or of the transform.
    pub fn is_unnamed(&self) -> bool {
        matches!(self.0, LoadErrorKind::Unnamed(_))
    }

    pub(crate) fn already_started(resource: &ResourceType) -> Self {
        Self(LoadErrorKind::AlreadyStarted(resource.clone()))
    }

    pub(crate) fn given_up() -> Self {
        Self(LoadErrorKind::GivenUp)
    }
}

impl From<saved::LoadError> for LoadError {
    fn from(error: saved::LoadError) -> Self {
        Self(LoadErrorKind::Content(error))
    }
}

impl From<Unnamed> for LoadError {
    fn from(error: Unnamed) -> Self {
        Self(LoadErrorKind::Unnamed(error))
    }
}
