//! The history in a file of SQLite.

#[cfg(feature = "postgres")]
pub(crate) mod copied;
mod file;
pub(crate) mod schema;
pub(crate) mod write;

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::batch::Batch;
use crate::error::Error;
use crate::report::{Cluster, Settings};
use crate::sql::db::Db;
use crate::sql::fault::Outcome;
use crate::sql::packing::Packing;
use write::BatchWriter;

/// Writes a file, which no other process writes meanwhile.
pub(crate) struct FileHistory {
    path: PathBuf,
    connection: Connection,
    writer: BatchWriter,
    files: schema::Files,
    _lock: schema::WriteLock,
}

impl FileHistory {
    pub(crate) fn open(path: &Path, cluster: &Cluster, settings: &Settings) -> Result<Self, Error> {
        let (connection, lock) = schema::open(path, cluster, settings, schema::FORMAT, schema::STEPS)?;
        let writer = BatchWriter::load(&connection).map_err(|fault| fault.at(path))?;
        Ok(Self { path: path.to_owned(), connection, writer, files: schema::Files::of(path), _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the last record.
    pub(crate) fn last(&self) -> i64 {
        self.writer.last()
    }

    /// Stores a batch, all of it or nothing, on the disk.
    pub(crate) fn commit(&mut self, batch: &Batch) -> Result<(), Error> {
        let files = schema::Files::of(&self.path);
        if !files.has_all_of(&self.files) {
            self.complete();
            return Err(Error::Replaced { path: self.path.clone() });
        }
        self.files = files;
        let committed = self.writer.commit(&self.connection, batch);
        self.settle(committed)
    }

    /// Changes rows.
    pub(crate) fn reworking<T>(
        &mut self,
        work: impl FnOnce(&mut Packing, Db<'_>) -> Outcome<T>,
    ) -> Result<T, Error> {
        let worked = work(&mut self.writer.packing, Db(&self.connection));
        self.settle(worked)
    }

    pub(crate) fn forget_objects(&mut self) {
        self.writer.forget_objects();
    }

    /// Writes the file anew, without free pages.
    pub(crate) fn compact(&mut self) -> Result<(), Error> {
        let compacted = Db(&self.connection).statements("VACUUM; PRAGMA wal_checkpoint(truncate)");
        self.files = schema::Files::of(&self.path);
        compacted.map_err(|fault| fault.at(&*self.path))
    }

    /// Writes into the file itself what only the log has, as far as readers allow. A file that is another one now, or was cut, gets
    /// nothing: parts of the former one would damage it.
    fn complete(&self) {
        // Failures lose nothing: the log has it.
        if schema::Files::of(&self.path).has_history_of(&self.files) {
            let _ = self.connection.pragma(None, "wal_checkpoint", "truncate", |_| Ok(()));
        } else {
            let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }

    /// After a failure, what this remembers may be more than what was stored.
    fn settle<T>(&mut self, outcome: Outcome<T>) -> Result<T, Error> {
        outcome.map_err(|fault| {
            if let Ok(writer) = BatchWriter::load(&self.connection) {
                self.writer = writer;
            }
            let error = fault.at(&*self.path);
            if error.is_full() {
                // Room that only the log beside the file takes is given back, as far as that is possible now.
                let _ = self.connection.pragma(None, "wal_checkpoint", "truncate", |_| Ok(()));
            }
            error
        })
    }
}

/// The file alone has everything then, and can be copied. SQLite does that only for a connection that is closed last.
impl Drop for FileHistory {
    fn drop(&mut self) {
        self.complete();
    }
}

#[cfg(test)]
mod tests;
