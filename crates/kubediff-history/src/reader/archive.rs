//! Days of a history in a database, as files.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use jiff::civil::Date;

use super::Reader;
use crate::error::Error;
use crate::postgres::archive;
use crate::sql::fault::Fault;
use crate::sqlite::copied::Copied;

impl Reader {
    /// The days (UTC) that are over, and of which something is kept. A file has none.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn days(&mut self) -> Result<Vec<Date>, Error> {
        self.at_once(|db, _, _| Ok(archive::days(db)?.into_keys().collect()))
    }

    /// Copies a day that is over into a new file, a history by itself: the records of the day with their numbers and times, and the states in
    /// which it begins. Values that were masked are masked there. The file is whole, or it is not there.
    ///
    /// `notes` gets the writer's notes of now to change them, and the time of the first record after the day.
    ///
    /// # Errors
    ///
    /// When the history has no such day that is over, or is a file; when the new file exists, or cannot be written.
    pub fn archive(
        &mut self,
        day: Date,
        to: &Path,
        notes: impl FnOnce(&mut BTreeMap<String, String>, Option<Timestamp>),
    ) -> Result<(), Error> {
        let cluster = self.cluster()?;
        let mut copied = Copied::begin(to, &cluster)?;
        let db = self.session.db();
        match db.reading(|db| archive::copy(db, &mut self.codec, day, &mut copied, notes)) {
            Ok(next) => copied.finish(next),
            Err(fault @ Fault::Sql(_)) => Err(fault.at(to)),
            Err(fault) => Err(self.failed(fault)),
        }
    }
}
