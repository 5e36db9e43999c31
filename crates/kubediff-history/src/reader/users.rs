//! Users of changes.

use super::Reader;
use crate::error::Error;

impl Reader {
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
