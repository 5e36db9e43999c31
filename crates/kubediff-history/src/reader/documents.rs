//! What the server said about itself and about its users.

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

    /// Whether the history has the user of any change.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn has_users(&mut self) -> Result<bool, Error> {
        let sql = "SELECT id FROM users LIMIT 1";
        self.at_once(|db, _, _| Ok(db.first(sql, &[], |row| row.get::<i64>(0))?.is_some()))
    }
}
