//! Errors below the facade, which does not know yet which history they are about.

use rusqlite::ffi;

use crate::error::{Error, Place};

pub(crate) type Outcome<T> = Result<T, Fault>;

#[derive(Debug)]
pub(crate) enum Fault {
    Sql(rusqlite::Error),
    #[cfg(feature = "postgres")]
    Postgres(tokio_postgres::Error),
    /// The connection has ended.
    #[cfg(feature = "postgres")]
    Closed,
    #[cfg(feature = "postgres")]
    Io(Box<dyn std::error::Error + Send + Sync>),
    Damaged(String),
    #[cfg(feature = "postgres")]
    WentBack(String),
    Invalid(&'static str),
    NotFound(String),
    Late,
    Zstd(zstd_dictionary::Error),
}

impl Fault {
    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(what.into())
    }

    /// Whether the content of a row contradicts itself.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged(_) | Self::Zstd(_))
    }

    /// Whether nobody knows if the last statement was executed.
    #[cfg(feature = "postgres")]
    pub(crate) fn is_unanswered(&self) -> bool {
        match self {
            Self::Closed => true,
            Self::Postgres(error) => error.code().is_none_or(|code| {
                ["08", "57P", "25P", "40003"].iter().any(|class| code.code().starts_with(class))
            }),
            _ => false,
        }
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
            #[cfg(feature = "postgres")]
            Self::Postgres(error) => postgres(error, place),
            #[cfg(feature = "postgres")]
            Self::Closed => Error::Unreachable { place, source: "the connection has ended".into() },
            #[cfg(feature = "postgres")]
            Self::Io(source) => Error::Io { place, source },
            Self::Damaged(what) => Error::Damaged { place, what },
            #[cfg(feature = "postgres")]
            Self::WentBack(what) => Error::WentBack { place, what },
            Self::Zstd(error) => Error::Damaged { place, what: error.to_string() },
            Self::Invalid(what) => Error::Invalid(what),
            Self::NotFound(what) => Error::NotFound(what),
            Self::Late => Error::Late,
        }
    }
}

/// The classes and codes are of the PostgreSQL documentation, "PostgreSQL Error Codes"; `KD...` are those of the functions in the tables' schema.
#[cfg(feature = "postgres")]
fn postgres(error: tokio_postgres::Error, place: Place) -> Error {
    let Some(of_server) = error.as_db_error() else {
        if is_untrusted(&error) {
            return Error::Untrusted { place, source: error.into() };
        }
        return Error::Unreachable { place, source: error.into() };
    };
    let found = of_server.message().to_owned();
    match of_server.code().code() {
        "53100" => Error::Full { place },
        "57014" => Error::Late,
        "55P03" => Error::Busy { place },
        "KD001" => Error::Fenced { place },
        "KD003" => Error::WentBack { place, what: found },
        "KD004" => Error::NameTaken { place, uid: found },
        "28000" | "28P01" | "3D000" | "42501" | "KD005" => Error::Denied { place, source: error.into() },
        // A database that only reads for now, such as one that is still a replica.
        "25006" | "25P02" | "25P03" | "25P04" => Error::Unreachable { place, source: error.into() },
        code if code.starts_with("08")
            || code.starts_with("57P")
            || code.starts_with("53")
            || code.starts_with("40") =>
        {
            Error::Unreachable { place, source: error.into() }
        }
        code if code.starts_with("XX00") => Error::Damaged { place, what: found },
        _ => Error::Io { place, source: error.into() },
    }
}

/// Whether the certificate of a server was refused.
#[cfg(feature = "postgres")]
fn is_untrusted(error: &(dyn std::error::Error + 'static)) -> bool {
    let of_tls = error.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref()?.downcast_ref());
    matches!(of_tls, Some(rustls::Error::InvalidCertificate(_))) || error.source().is_some_and(is_untrusted)
}

#[cfg(feature = "postgres")]
impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
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
