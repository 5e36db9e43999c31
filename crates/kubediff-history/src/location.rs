//! Where histories are.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::Error;
#[cfg(feature = "postgres")]
use crate::postgres::Address;

/// Where a history is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In a file of SQLite.
    File(PathBuf),
    /// In a database of PostgreSQL, which has the histories of any number of clusters.
    #[cfg(feature = "postgres")]
    Database(Address),
}

impl Location {
    /// From a path, or from an address as `postgres://user@host/database`.
    ///
    /// # Errors
    ///
    /// [`Error::Address`] for an address that is none.
    pub fn parse(text: &str) -> Result<Self, Error> {
        #[cfg(feature = "postgres")]
        if Address::is_one(text) {
            return Address::parse(text).map(Self::Database);
        }
        Ok(Self::File(text.into()))
    }

    /// The path of its file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            #[cfg(feature = "postgres")]
            Self::Database(_) => None,
        }
    }
}

impl FromStr for Location {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// Without a password.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            #[cfg(feature = "postgres")]
            Self::Database(address) => address.place().fmt(f),
        }
    }
}
