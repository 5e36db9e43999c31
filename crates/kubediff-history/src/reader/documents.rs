//! Documents that the server gave about itself, as a reader finds them.

use std::collections::BTreeMap;

use super::Reader;
use crate::error::Error;
use crate::record::Number;
use crate::sql::documents;

impl Reader {
    /// The last edition of each document of the server ([`History::document`](crate::History::document)), by name.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn editions(&mut self) -> Result<BTreeMap<String, String>, Error> {
        self.at_once(|db, _, _| documents::editions(db))
    }

    /// A document of the server, as it was after a record. The oldest one, where the server was first asked later; `None` where it had none.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn document(&mut self, name: &str, after: Number) -> Result<Option<Vec<u8>>, Error> {
        self.at_once(|db, codec, _| documents::read(db, codec, name, after))
    }
}
