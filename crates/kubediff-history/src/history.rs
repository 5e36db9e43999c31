//! Writes a history.

use std::fmt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::batch::Batch;
use crate::document::Document;
use crate::error::{Error, Place};
use crate::location::Location;
use crate::mask::Mask;
#[cfg(feature = "postgres")]
use crate::postgres::PostgresHistory;
use crate::reader::Reader;
use crate::record::{Number, User};
use crate::report::{Cluster, Plan, Retained, Scrub, Settings, Settled};
use crate::sql::db::Db;
use crate::sql::fault::Outcome;
use crate::sql::packing::Packing;
use crate::sql::{documents, retain, scrub, sinks, stories, users, values};
use crate::sqlite::{FileHistory, schema};
use crate::story::Folded;

/// Writes a history. One process at a time has it.
///
/// It takes about 64 MB of memory for the latest versions of objects; in a file, 32 MB more for its pages.
pub struct History(Store);

enum Store {
    File(Box<FileHistory>),
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresHistory>),
}

impl History {
    /// Opens the history in this file, and makes it if there is none. A file of an older format is copied beside itself
    /// (`FILE-format-N`) and then migrated.
    ///
    /// # Errors
    ///
    /// When another process writes to the file, when it is no history, of another cluster or of a newer format.
    pub fn open(path: impl AsRef<Path>, cluster: &Cluster, settings: &Settings) -> Result<Self, Error> {
        Ok(Self(Store::File(Box::new(FileHistory::open(path.as_ref(), cluster, settings)?))))
    }

    /// Opens the history of a cluster in a file or in a database. In a database, this process has the cluster's term from now on: the right to
    /// write, for as long as it renews it.
    ///
    /// # Errors
    ///
    /// As [`History::open`]; in a database also [`Error::Held`] while another process has the term, [`Error::NameTaken`] when another cluster has
    /// the name, [`Error::NoTables`] in a database without histories, [`Error::Denied`] and [`Error::Unreachable`].
    pub fn at(location: &Location, cluster: &Cluster, settings: &Settings) -> Result<Self, Error> {
        match location {
            Location::File(path) => Self::open(path, cluster, settings),
            #[cfg(feature = "postgres")]
            Location::Database(address) => {
                let opened = PostgresHistory::open(address, cluster, settings.holder(), settings.returns)?;
                Ok(Self::of_postgres(opened))
            }
        }
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn of_postgres(history: PostgresHistory) -> Self {
        Self(Store::Postgres(Box::new(history)))
    }

    /// Keeps the term of a history in a database, or lends it: then whoever stands by may have it at once, and until somebody does, this
    /// process writes. A process that sees nothing lends its term to one that may see.
    #[cfg_attr(not(feature = "postgres"), expect(unused_variables, reason = "a file has no term"))]
    pub fn hold(&mut self, keeps: bool) {
        match &mut self.0 {
            Store::File(_) => {}
            #[cfg(feature = "postgres")]
            Store::Postgres(postgres) => postgres.hold(keeps),
        }
    }

    /// Whether another process stands by, and would have the term soon if this one gave it back.
    pub fn is_awaited(&mut self) -> bool {
        match &mut self.0 {
            Store::File(_) => false,
            #[cfg(feature = "postgres")]
            Store::Postgres(postgres) => postgres.is_awaited(),
        }
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

    /// Where it is.
    pub fn place(&self) -> Place {
        match &self.0 {
            Store::File(file) => file.path().into(),
            #[cfg(feature = "postgres")]
            Store::Postgres(postgres) => postgres.address().place(),
        }
    }

    /// Another way to read this history.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened again, or the database does not take another connection.
    pub fn reader(&self) -> Result<Reader, Error> {
        match &self.0 {
            Store::File(file) => Reader::open(file.path()),
            #[cfg(feature = "postgres")]
            Store::Postgres(postgres) => Reader::of_log(postgres.address(), &postgres.session.id),
        }
    }

    /// Stores a batch, all of it or nothing, and returns the number of the last record. A returned batch is on the
    /// disk.
    ///
    /// # Errors
    ///
    /// [`Error::Replaced`] when another file has the name of this one or of the log beside it, or it was cut, [`Error::Full`] when there is no room, [`Error::Invalid`] when an observation cannot be stored. Nothing of the
    /// batch is stored then, and the same batch may be committed again.
    pub fn commit(&mut self, batch: &Batch) -> Result<Number, Error> {
        match &mut self.0 {
            Store::File(file) => file.commit(batch)?,
            #[cfg(feature = "postgres")]
            Store::Postgres(postgres) => postgres.commit(batch)?,
        }
        Ok(values::number(self.0.last()))
    }

    /// Whether commits since the last call have found the newest version of an object damaged. They store the next one as a whole.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] for the first such version. What was committed is stored all the same.
    pub fn passed_over(&mut self) -> Result<(), Error> {
        self.0.reworking(|packing, _| packing.damage.take().map_or(Ok(()), Err))
    }

    /// Gives up the memory of recent versions and of pages of the file; they are read again when they are needed.
    ///
    /// # Errors
    ///
    /// When SQLite refuses.
    pub fn give_up_caches(&mut self) -> Result<(), Error> {
        self.0.forget_objects();
        self.0.with(|db| db.shrink())
    }

    /// Adds a sink, if it is new: it will get what is recorded from now on.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn add_sink(&mut self, name: &str) -> Result<(), Error> {
        let last = self.0.last();
        self.0.with(|db| sinks::add(db, name, last))
    }

    /// Notes what became of records that a sink was to take, all of it or nothing. A position never goes back.
    ///
    /// # Errors
    ///
    /// When there is no such sink or record, or the file cannot be written.
    pub fn settle_sink(&mut self, sink: &str, settled: &Settled) -> Result<(), Error> {
        if settled.position > values::number(self.0.last()) {
            return Err(Error::NotFound(format!("record {}", settled.position)));
        }
        self.0.with(|db| sinks::settle(db, sink, settled))
    }

    /// Stores the stories that a fold has found, and how far it has come, all of it or nothing.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn fold(&mut self, folded: &Folded) -> Result<(), Error> {
        self.0.with(|db| stories::fold(db, folded))
    }

    /// Stores the users of changes, in place of those that were stored, all of it or nothing. A change that is not there any more is passed over.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn attribute(&mut self, users: &[(Number, User)]) -> Result<(), Error> {
        self.0.with(|db| users::attribute(db, users))
    }

    /// Stores a document of the server, which is that from the next record on. One whose edition is stored already stays as it is.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn document(&mut self, document: &Document) -> Result<(), Error> {
        self.0.reworking(|packing, db| documents::store(&mut packing.codec, db, document))
    }

    /// Removes a sink: nothing is kept for it any more.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn remove_sink(&mut self, name: &str) -> Result<(), Error> {
        self.0.with(|db| sinks::remove(db, name))
    }

    /// Takes the next step of a plan, until a step removes nothing ([`Retained::more`]): it removes some of the oldest records,
    /// but never the newest version of an object that exists, nor the state in which what is kept begins. The file does not
    /// shrink; its room is used again.
    ///
    /// # Errors
    ///
    /// When the file cannot be written. Nothing of this step is removed then.
    pub fn retain(&mut self, plan: &Plan) -> Result<Retained, Error> {
        let retained = self.0.reworking(|packing, db| retain::retain(packing, db, plan));
        match &mut self.0 {
            // Versions that the next deltas would build on may have another form now.
            Store::File(file) => file.forget_objects(),
            #[cfg(feature = "postgres")]
            Store::Postgres(postgres) => postgres.forget_ended(),
        }
        let retained = retained?;
        if !retained.more {
            self.0.with(|db| db.reclaim())?;
        }
        Ok(retained)
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
    pub fn scrub_since(&mut self, since: Timestamp, most: u32) -> Result<Scrub, Error> {
        let last = self.0.last();
        let after = self.0.with(|db| scrub::start(db, since.as_microsecond(), i64::from(most), last))?;
        Ok(self.scrub_after(after))
    }

    fn scrub_after(&self, after: i64) -> Scrub {
        Scrub { from: after + 1, after, until: self.0.last(), repacked: 0, masked: 0, is_clean: false }
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
        let more = self.0.reworking(|packing, db| scrub::step(packing, db, scrub, mask));
        if scrub.masked > before {
            // The next versions are packed against what is stored now.
            self.0.forget_objects();
        }
        if more? {
            return Ok(true);
        }
        scrub.is_clean = self.0.with(|db| db.end_scrub())?;
        Ok(false)
    }

    /// Writes the file anew, without free pages. It needs as much room again.
    ///
    /// # Errors
    ///
    /// When there is no room, or a reader has the file.
    pub fn compact(&mut self) -> Result<(), Error> {
        match &mut self.0 {
            Store::File(file) => file.compact(),
            // The database's own vacuum does that.
            #[cfg(feature = "postgres")]
            Store::Postgres(_) => Ok(()),
        }
    }
}

impl Store {
    /// The number of the last record.
    fn last(&self) -> i64 {
        match self {
            Self::File(file) => file.last(),
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => postgres.last(),
        }
    }

    /// Changes rows besides versions.
    fn with<T>(&mut self, work: impl FnOnce(Db<'_>) -> Outcome<T>) -> Result<T, Error> {
        self.reworking(|_, db| work(db))
    }

    /// Changes versions, too.
    fn reworking<T>(&mut self, work: impl FnOnce(&mut Packing, Db<'_>) -> Outcome<T>) -> Result<T, Error> {
        match self {
            Self::File(file) => file.reworking(work),
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => postgres.reworking(work),
        }
    }

    /// Forgets what it knows of objects.
    fn forget_objects(&mut self) {
        match self {
            Self::File(file) => file.forget_objects(),
            #[cfg(feature = "postgres")]
            Self::Postgres(postgres) => postgres.forget_objects(),
        }
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "History({})", self.place())
    }
}
