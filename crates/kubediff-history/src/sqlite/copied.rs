//! A new file that another history is copied into: it is whole, or it is not there.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;

use super::schema::{self, WriteLock, beside, is_absent};
use super::write::BatchWriter;
use crate::batch::Observation;
use crate::error::Error;
use crate::record::ObjectId;
use crate::report::{Cluster, Settings};
use crate::sql::db::{Db, Value};
use crate::sql::fault::{Fault, Outcome};

/// The names of the unfinished file, and of the files beside it.
const PART: &str = "-part";
const PARTS: [&str; 5] = ["-part", "-part-wal", "-part-shm", "-part-journal", "-part-lock"];

/// The file as far as it has come.
pub(crate) struct Copied {
    to: PathBuf,
    connection: Connection,
    writer: BatchWriter,
    parts: Parts,
}

/// What is beside the file, and goes in any case.
struct Parts {
    to: PathBuf,
    _lock: WriteLock,
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Parts {
    fn remove(&self) {
        for end in PARTS {
            // What is not there need not go.
            let _ = std::fs::remove_file(beside(&self.to, end));
        }
    }
}

impl Copied {
    /// Begins a file that is not there yet.
    pub(crate) fn begin(to: &Path, cluster: &Cluster) -> Result<Self, Error> {
        is_absent(to)?;
        let part = beside(to, PART);
        // Nobody else writes it: what is there is of a process that was killed.
        let parts = Parts { to: to.to_owned(), _lock: WriteLock::take(&part)? };
        for end in PARTS.iter().filter(|end| !end.ends_with("-lock")) {
            let _ = std::fs::remove_file(beside(to, end));
        }
        schema::create(&part).map_err(io(to))?;
        let open = || -> Outcome<_> {
            let mut connection = Connection::open(&part)?;
            schema::prepare(&mut connection, cluster, &Settings::default(), schema::FORMAT)?;
            // A part of a file is of no use, so nothing need bring it back to what it was.
            connection.pragma_update(None, "journal_mode", "delete")?;
            connection.pragma_update(None, "journal_mode", "off")?;
            connection.pragma_update(None, "synchronous", "off")?;
            connection.execute_batch("BEGIN; DELETE FROM timelines")?;
            let writer = BatchWriter::load(&connection)?;
            Ok((connection, writer))
        };
        let (connection, writer) = open().map_err(|fault| fault.at(to))?;
        Ok(Self { to: to.to_owned(), connection, writer, parts })
    }

    /// Stores a version, or the state that noise has led to.
    pub(crate) fn adopt(&mut self, number: i64, observation: &Observation) -> Outcome<()> {
        self.writer.adopt(&self.connection, number, observation)
    }

    /// The newest version so far of an object that exists, and its content.
    pub(crate) fn newest(&mut self, object: &ObjectId) -> Outcome<Option<(i64, Arc<[u8]>)>> {
        self.writer.newest(&self.connection, object)
    }

    /// Stores another row.
    pub(crate) fn run(&self, sql: &str, values: &[Value]) -> Outcome<()> {
        Db(&self.connection).run(sql, values).map(drop)
    }

    /// Gives the file its name. `next` is the first number that no record has.
    pub(crate) fn finish(self, next: i64) -> Result<(), Error> {
        let Self { to, connection, writer, parts } = self;
        let close = || -> Outcome<()> {
            connection
                .execute_batch("DELETE FROM meta WHERE name IN ('ordered_from', 'disordered_until')")?;
            connection.execute_batch(schema::ORDER)?;
            let bytes = i64::try_from(writer.event_bytes).unwrap_or(i64::MAX);
            let meta = "UPDATE meta SET value = CASE name WHEN 'next' THEN ?1 ELSE ?2 END WHERE name IN ('next', 'event_bytes')";
            connection.execute(meta, [next, bytes])?;
            connection.execute_batch("COMMIT; PRAGMA journal_mode = delete")?;
            connection.close().map_err(|(_, error)| Fault::from(error))
        };
        close().map_err(|fault| fault.at(&*to))?;
        let part = beside(&to, PART);
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(&part).and_then(|file| file.sync_all()).map_err(io(&to))?;
        is_absent(&to)?;
        std::fs::rename(&part, &to).map_err(io(&to))?;
        drop(parts);
        // On other systems a folder is no file to open.
        #[cfg(unix)]
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(io(&to))?;
        Ok(())
    }
}

fn io(to: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let place = to.into();
    |source| Error::Io { place, source: source.into() }
}
