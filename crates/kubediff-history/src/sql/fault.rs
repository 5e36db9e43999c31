//! Errors below the facade, which does not know yet which history they are about.

use rusqlite::ffi;

use crate::error::{Error, Place};

pub(crate) type Outcome<T> = Result<T, Fault>;

#[derive(Debug)]
pub(crate) enum Fault {
    Sql(rusqlite::Error),
    Damaged(String),
    Invalid(&'static str),
    NotFound(String),
    Late,
    Zstd(zstd_dictionary::Error),
}

impl Fault {
    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(what.into())
    }

    pub(crate) fn at(self, place: impl Into<Place>) -> Error {
        let place = place.into();
        match self {
            Self::Sql(error) => match error.sqlite_error().map(|error| (error.code, error.extended_code)) {
                Some((rusqlite::ErrorCode::DiskFull, _) | (_, ffi::SQLITE_IOERR_SHMSIZE)) => {
                    Error::Full { place }
                }
                Some((_, ffi::SQLITE_IOERR_WRITE)) if files_are_limited() => Error::Full { place },
                Some((rusqlite::ErrorCode::NotADatabase, _)) => Error::Foreign { place },
                Some((rusqlite::ErrorCode::DatabaseCorrupt, _)) => {
                    Error::Damaged { place, what: error.to_string() }
                }
                Some((rusqlite::ErrorCode::DatabaseBusy, _)) => Error::Busy { place },
                Some((rusqlite::ErrorCode::OperationInterrupted, _)) => Error::Late,
                _ => Error::Io { place, source: error.into() },
            },
            Self::Damaged(what) => Error::Damaged { place, what },
            Self::Zstd(error) => Error::Damaged { place, what: error.to_string() },
            Self::Invalid(what) => Error::Invalid(what),
            Self::NotFound(what) => Error::NotFound(what),
            Self::Late => Error::Late,
        }
    }
}

/// Whether `ulimit -f` limits the files of this process. SQLite does not tell a write that met the limit from a broken disk.
fn files_are_limited() -> bool {
    #[cfg(unix)]
    return rustix::process::getrlimit(rustix::process::Resource::Fsize).current.is_some();
    #[cfg(not(unix))]
    return false;
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<zstd_dictionary::Error> for Fault {
    fn from(error: zstd_dictionary::Error) -> Self {
        Self::Zstd(error)
    }
}
