//! The history in a file of SQLite.

pub(crate) mod schema;
pub(crate) mod write;

use std::fmt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::batch::Batch;
use crate::error::Error;
use crate::mask::Mask;
use crate::reader::Reader;
use crate::record::Number;
use crate::report::{Cluster, Plan, Retained, Scrub, Settings, Settled};
use crate::sql::db::Db;
use crate::sql::fault::{Fault, Outcome};
use crate::sql::{retain, scrub, sinks, stories, values};
use crate::story::Folded;
use write::BatchWriter;

/// Writes a history. One process at a time has it.
///
/// It takes about 64 MB of memory for the latest versions of objects, and 32 MB for pages of the file.
pub struct History {
    path: PathBuf,
    connection: Connection,
    writer: BatchWriter,
    files: schema::Files,
    _lock: schema::WriteLock,
}

impl History {
    /// Opens the history in this file, and makes it if there is none. A file of an older format is copied beside itself
    /// (`FILE-format-N`) and then migrated.
    ///
    /// # Errors
    ///
    /// When another process writes to the file, when it is no history, of another cluster or of a newer format.
    pub fn open(path: impl AsRef<Path>, cluster: &Cluster, settings: &Settings) -> Result<Self, Error> {
        let path = path.as_ref();
        let (connection, lock) = schema::open(path, cluster, settings, schema::FORMAT, schema::STEPS)?;
        let writer = BatchWriter::load(&connection).map_err(|fault| fault.at(path))?;
        Ok(Self { path: path.to_owned(), connection, writer, files: schema::Files::of(path), _lock: lock })
    }

    /// Migrates a file of an older format to this one, and returns the path of the backup that is made before. `None` for a file
    /// of this format, which stays as it is. `done` gets the percentage that is done, from time to time.
    ///
    /// # Errors
    ///
    /// When there is no such file, it is of another cluster than this one, another process writes to it, or the disk has no room for
    /// the backup.
    pub fn migrate(
        path: impl AsRef<Path>,
        cluster: Option<&Cluster>,
        mut done: impl FnMut(u8),
    ) -> Result<Option<PathBuf>, Error> {
        schema::migrate_file(path.as_ref(), cluster, &mut done)
    }

    /// Stores a batch, all of it or nothing, and returns the number of the last record. A returned batch is on the
    /// disk.
    ///
    /// # Errors
    ///
    /// [`Error::Replaced`] when another file has the name of this one or of the log beside it, or it was cut, [`Error::Full`] when there is no room, [`Error::Invalid`] when an observation cannot be stored. Nothing of the
    /// batch is stored then, and the same batch may be committed again.
    pub fn commit(&mut self, batch: &Batch) -> Result<Number, Error> {
        let files = schema::Files::of(&self.path);
        if !files.has_all_of(&self.files) {
            self.complete();
            return Err(Error::Replaced { path: self.path.clone() });
        }
        self.files = files;
        let committed = self.writer.commit(&self.connection, batch);
        self.settle(committed)?;
        Ok(values::number(self.writer.last()))
    }

    /// Gives up the memory of recent versions and of pages of the file; they are read again when they are needed.
    ///
    /// # Errors
    ///
    /// When SQLite refuses.
    pub fn give_up_caches(&mut self) -> Result<(), Error> {
        self.writer.forget_objects();
        let given = self.connection.execute_batch("PRAGMA shrink_memory");
        given.map_err(|error| Fault::from(error).at(&*self.path))
    }

    fn db(&self) -> Db<'_> {
        Db::Sqlite(&self.connection)
    }

    /// Adds a sink, if it is new: it will get what is recorded from now on.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn add_sink(&mut self, name: &str) -> Result<(), Error> {
        sinks::add(self.db(), name, self.writer.last()).map_err(|fault| fault.at(&*self.path))
    }

    /// Notes what became of records that a sink was to take, all of it or nothing. A position never goes back.
    ///
    /// # Errors
    ///
    /// When there is no such sink or record, or the file cannot be written.
    pub fn settle_sink(&mut self, sink: &str, settled: &Settled) -> Result<(), Error> {
        let last = values::number(self.writer.last());
        if settled.position > last {
            return Err(Error::NotFound(format!("record {}", settled.position)));
        }
        sinks::settle(self.db(), sink, settled).map_err(|fault| fault.at(&*self.path))
    }

    /// Stores the stories that a fold has found, and how far it has come, all of it or nothing.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn fold(&mut self, folded: &Folded) -> Result<(), Error> {
        stories::fold(self.db(), folded).map_err(|fault| fault.at(&*self.path))
    }

    /// Removes a sink: nothing is kept for it any more.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn remove_sink(&mut self, name: &str) -> Result<(), Error> {
        sinks::remove(self.db(), name).map_err(|fault| fault.at(&*self.path))
    }

    /// Takes the next step of a plan, until a step removes nothing ([`Retained::more`]): it removes some of the oldest records,
    /// but never the newest version of an object that exists, nor the state in which what is kept begins. The file does not
    /// shrink; its room is used again.
    ///
    /// # Errors
    ///
    /// When the file cannot be written. Nothing of this step is removed then.
    pub fn retain(&mut self, plan: &Plan) -> Result<Retained, Error> {
        let retained = retain::retain(&mut self.writer.packing, Db::Sqlite(&self.connection), plan);
        // Versions that the next deltas would build on may have another form now.
        self.writer.forget_objects();
        self.settle(retained)
    }

    /// A scrub of everything that is stored.
    pub fn scrub_of_all(&self) -> Scrub {
        self.scrub_after(0)
    }

    /// A scrub of what was recorded since this time, and of no more than so many of the last records.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn scrub_since(&self, since: Timestamp, most: u32) -> Result<Scrub, Error> {
        let start = scrub::start(self.db(), since.as_microsecond(), i64::from(most), self.writer.last());
        Ok(self.scrub_after(start.map_err(|fault| fault.at(&*self.path))?))
    }

    fn scrub_after(&self, after: i64) -> Scrub {
        let until = self.writer.last();
        Scrub { from: after + 1, after, until, repacked: 0, masked: 0, is_clean: false }
    }

    /// Takes the next step of a scrub: in some versions, and in the texts of gaps, dead letters and notes, it replaces what is
    /// stored by what the mask leaves of it. Returns whether there is another step. After the last one, what was masked is nowhere in
    /// the file, its free pages included, and [`Scrub::is_clean`] says whether the log beside it is empty. Positions, numbers and times
    /// stay, and so do managers and the names of objects.
    ///
    /// A scrub that did not come to its end is begun again: it leaves alone what is masked already.
    ///
    /// # Errors
    ///
    /// When the file cannot be written. Nothing is changed by this step then.
    pub fn scrub(&mut self, scrub: &mut Scrub, mask: &dyn Mask) -> Result<bool, Error> {
        let before = scrub.masked;
        let more = scrub::step(&mut self.writer.packing, Db::Sqlite(&self.connection), scrub, mask);
        if scrub.masked > before {
            // The next versions are packed against what is stored now.
            self.writer.forget_objects();
        }
        if self.settle(more)? {
            return Ok(true);
        }
        let emptied = self.connection.query_row("PRAGMA wal_checkpoint(truncate)", [], |row| row.get(0));
        scrub.is_clean =
            emptied.map(|busy: i64| busy == 0).map_err(|error| Fault::from(error).at(&*self.path))?;
        Ok(false)
    }

    /// Writes the file anew, without free pages. It needs as much room again.
    ///
    /// # Errors
    ///
    /// When there is no room, or a reader has the file.
    pub fn compact(&mut self) -> Result<(), Error> {
        let compacted = self.connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(truncate)");
        self.files = schema::Files::of(&self.path);
        compacted.map_err(|error| Fault::from(error).at(&*self.path))
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

    /// Another way to read this history.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened again.
    pub fn reader(&self) -> Result<Reader, Error> {
        Reader::open(&self.path)
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
impl Drop for History {
    fn drop(&mut self) {
        self.complete();
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "History({})", self.path.display())
    }
}

#[cfg(test)]
mod tests;
