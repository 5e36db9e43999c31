//! Where histories are.

use std::path::PathBuf;

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
}
