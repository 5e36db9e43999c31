//! Whether something was written to the file since.

use super::Reader;
use crate::error::Error;

impl Reader {
    /// A number that is another one once something was written to the file. Those of two readers say nothing about each other.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn revision(&mut self) -> Result<i64, Error> {
        self.at_once(|connection, _, _| {
            Ok(connection.pragma_query_value(None, "data_version", |row| row.get(0))?)
        })
    }
}
