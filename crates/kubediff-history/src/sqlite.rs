//! The history in a file of SQLite. Nothing above this module knows that.

mod candidates;
mod chosen;
mod codec;
mod conditions;
mod deadline;
mod detail;
mod fault;
mod links;
mod names;
mod noise;
mod read;
mod recent;
mod retain;
mod revision;
mod schema;
mod scrub;
mod sight;
mod sinks;
mod states;
mod stories;
mod survey;
mod times;
mod values;
mod verify;
mod write;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, params};
use serde_json::Value;

use crate::batch::Batch;
use crate::blame::{Blame, Blaming, Field};
use crate::error::Error;
use crate::filter::{At, Filter, Page, Scope};
use crate::mask::Mask;
use crate::record::{Gap, Gvk, Incarnation, Number, Version};
use crate::report::{
    Checked, Cluster, DeadLetter, Ids, Plan, Present, Records, Retained, Retention, Scrub, Settings, Settled,
    Sink, Size,
};
use crate::survey::Survey;
use codec::Codec;
use fault::{Fault, Outcome};
use read::Lens;
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

/// Reads a history, while others read and one writes. Each answer is of one moment.
pub struct Reader {
    path: PathBuf,
    connection: Connection,
    codec: Codec,
    lens: Lens,
    /// When the server made objects, by their ids and first numbers: a few of those that a limit had to look at.
    made: HashMap<(i64, i64), Option<Timestamp>>,
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
        given.map_err(|error| Fault::from(error).at(&self.path))
    }

    /// Adds a sink, if it is new: it will get what is recorded from now on.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn add_sink(&mut self, name: &str) -> Result<(), Error> {
        let sql = "INSERT INTO sinks VALUES (?1, ?2, 0) ON CONFLICT DO NOTHING";
        let added = self.connection.execute(sql, params![name, self.writer.last()]);
        added.map(drop).map_err(|error| Fault::from(error).at(&self.path))
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
        sinks::settle(&self.connection, sink, settled).map_err(|fault| fault.at(&self.path))
    }

    /// Removes a sink: nothing is kept for it any more.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn remove_sink(&mut self, name: &str) -> Result<(), Error> {
        sinks::remove(&self.connection, name).map_err(|fault| fault.at(&self.path))
    }

    /// Takes the next step of a plan, until a step removes nothing ([`Retained::more`]): it removes some of the oldest records,
    /// but never the newest version of an object that exists, nor the state in which what is kept begins. The file does not
    /// shrink; its room is used again.
    ///
    /// # Errors
    ///
    /// When the file cannot be written. Nothing of this step is removed then.
    pub fn retain(&mut self, plan: &Plan) -> Result<Retained, Error> {
        let retained = retain::retain(&mut self.writer, &self.connection, plan);
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
        let start =
            scrub::start(&self.connection, since.as_microsecond(), i64::from(most), self.writer.last());
        Ok(self.scrub_after(start.map_err(|fault| fault.at(&self.path))?))
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
        let more = scrub::step(&mut self.writer, &self.connection, scrub, mask);
        if scrub.masked > before {
            // The next versions are packed against what is stored now.
            self.writer.forget_objects();
        }
        if self.settle(more)? {
            return Ok(true);
        }
        let emptied = self.connection.query_row("PRAGMA wal_checkpoint(truncate)", [], |row| row.get(0));
        scrub.is_clean =
            emptied.map(|busy: i64| busy == 0).map_err(|error| Fault::from(error).at(&self.path))?;
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
        compacted.map_err(|error| Fault::from(error).at(&self.path))
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
            let error = fault.at(&self.path);
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

impl Reader {
    /// Opens the history in this file for reading.
    ///
    /// # Errors
    ///
    /// When there is no such file, it is no history, or of a format that this program does not know.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let connection = schema::open_for_reading(path)?;
        let opened = || -> Outcome<_> {
            let cluster = schema::cluster_of(&connection)?;
            Ok((Codec::new()?, cluster.name.unwrap_or(cluster.uid)))
        };
        let (codec, cluster) = opened().map_err(|fault| fault.at(path))?;
        Ok(Self {
            path: path.to_owned(),
            connection,
            codec,
            lens: Lens { cluster, mask: None, is_limited: false },
            made: HashMap::new(),
        })
    }

    /// From now on, records and versions are read without what the mask takes out.
    pub fn mask(&mut self, mask: Arc<dyn Mask>) {
        self.lens.mask = Some(mask);
    }

    /// Runs queries at one moment of the history.
    fn at_once<T>(
        &mut self,
        query: impl FnOnce(&Connection, &mut Codec, &Lens) -> Outcome<T>,
    ) -> Result<T, Error> {
        let run = || {
            let transaction = self.connection.unchecked_transaction()?;
            query(&transaction, &mut self.codec, &self.lens)
        };
        run().map_err(|fault| fault.at(&self.path))
    }

    /// The cluster that this is the history of.
    ///
    /// # Errors
    ///
    /// As each method here: when the file cannot be read, or is damaged.
    pub fn cluster(&mut self) -> Result<Cluster, Error> {
        self.at_once(|connection, _, _| schema::cluster_of(connection))
    }

    /// Changes, and gaps if they are asked for.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn records(&mut self, filter: &Filter, page: &Page) -> Result<Records, Error> {
        self.at_once(|connection, codec, lens| read::records(connection, codec, lens, filter, page))
    }

    /// The records that a sink has not taken yet, the oldest first: at most this many.
    ///
    /// # Errors
    ///
    /// When there is no such sink, the file cannot be read, or is damaged.
    pub fn pending(&mut self, sink: &str, limit: usize) -> Result<Records, Error> {
        self.at_once(|connection, codec, lens| {
            let sinks = read::sinks(connection)?;
            let found = sinks.iter().find(|it| it.name == sink);
            let found = found.ok_or_else(|| Fault::NotFound(format!("sink {sink}")))?;
            let filter = Filter { gaps: true, ..Filter::default() };
            let page = Page::oldest(limit).after(found.position);
            read::records(connection, codec, lens, &filter, &page)
        })
    }

    /// The gaps in a time and scope, the oldest first.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn gaps(
        &mut self,
        scope: &Scope,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
        page: &Page,
    ) -> Result<Vec<Gap>, Error> {
        self.at_once(|connection, _, lens| {
            let mut gaps = read::gaps(connection, scope, from, to, page, page.limit)?;
            lens.gaps(&mut gaps);
            Ok(gaps)
        })
    }

    /// The incarnations of a scope, also deleted ones; the latest to change is last. 10,000 at most.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn incarnations(&mut self, scope: &Scope) -> Result<Vec<Incarnation>, Error> {
        self.at_once(|connection, _, _| states::incarnations(connection, scope))
    }

    /// One version of an incarnation; `None` when the history does not have it.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn version(&mut self, incarnation: &Incarnation, at: &At) -> Result<Option<Version>, Error> {
        self.at_once(|connection, codec, lens| states::version(connection, codec, lens, incarnation, at))
    }

    /// The version of a record; `None` when the history does not have it (any more), and for a gap.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn version_of(&mut self, number: Number) -> Result<Option<Version>, Error> {
        self.at_once(|connection, codec, lens| states::numbered(connection, codec, lens, number))
    }

    /// The version of the same object before the one of this record, as far as the history has it.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn version_before(&mut self, number: Number) -> Result<Option<Version>, Error> {
        self.at_once(|connection, codec, lens| states::before(connection, codec, lens, number))
    }

    /// The incarnations of a scope that changed in a time, or whose current state noise has led to then: from `from` on, before
    /// `to`. The latest to change is last.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn changed(
        &mut self,
        scope: &Scope,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
    ) -> Result<Vec<Incarnation>, Error> {
        self.at_once(|connection, _, _| {
            let filter = Filter { scope: scope.clone(), from, to, ..Filter::default() };
            states::described(connection, read::changed(connection, &filter)?)
        })
    }

    /// Visits the versions of an incarnation, the oldest first, until `visit` breaks.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn versions(
        &mut self,
        incarnation: &Incarnation,
        mut visit: impl FnMut(Version) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.at_once(|connection, codec, lens| {
            states::versions(connection, codec, lens, incarnation, &mut visit)
        })
    }

    /// The objects of a scope at a time, or now, by namespace and name: [`Reader::states`] reads them, some at a time. An object
    /// that was gone by then costs nothing.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn present(&mut self, scope: &Scope, at: Option<Timestamp>) -> Result<Present, Error> {
        self.at_once(|connection, _, _| states::present(connection, scope, at))
    }

    /// The states of some of these objects, without those that retention has removed since; where they are those of now, also
    /// without those that were deleted since.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn states(&mut self, present: &Present, some: Range<usize>) -> Result<Vec<Version>, Error> {
        self.at_once(|connection, codec, lens| states::of(connection, codec, lens, present, some))
    }

    /// The states of all objects of a scope at a time, or now, where these are few: all of them are in memory.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn state(&mut self, scope: &Scope, at: Option<Timestamp>) -> Result<Vec<Version>, Error> {
        self.at_once(|connection, codec, lens| {
            let present = states::present(connection, scope, at)?;
            states::of(connection, codec, lens, &present, 0..present.len())
        })
    }

    /// The authors of each field of an incarnation, as of its newest version or of the one with this number. `fields_of` lists the fields
    /// of an object; it leaves out those that have no author, such as `metadata.managedFields`.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn blame(
        &mut self,
        incarnation: &Incarnation,
        until: Option<Number>,
        fields_of: &dyn Fn(&Value) -> Vec<Field>,
    ) -> Result<Blame, Error> {
        let mut blaming = Blaming::new(fields_of);
        self.versions(incarnation, |version| {
            if until.is_some_and(|until| version.number > until) {
                return ControlFlow::Break(());
            }
            blaming.version(&version);
            ControlFlow::Continue(())
        })?;
        Ok(blaming.finish(incarnation))
    }

    /// The ids of records, as the writer that there is now gives them.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn ids(&mut self) -> Result<Ids, Error> {
        self.at_once(|connection, _, _| read::ids(connection))
    }

    /// Up to which resourceVersion the history has each resource (`deployments.apps`).
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn positions(&mut self) -> Result<BTreeMap<String, String>, Error> {
        self.at_once(|connection, _, _| read::positions(connection))
    }

    /// The writer's notes ([`Batch::note`]), by name.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn notes(&mut self) -> Result<BTreeMap<String, String>, Error> {
        self.at_once(|connection, _, _| read::notes(connection))
    }

    /// The prints of hidden values ([`Batch::print`]) with their namespaces, the oldest first.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn prints(&mut self) -> Result<Vec<(String, Vec<u8>)>, Error> {
        self.at_once(|connection, _, _| read::prints(connection))
    }

    /// The names of all objects, namespaces and managers.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn words(&mut self) -> Result<Vec<String>, Error> {
        self.at_once(|connection, _, _| read::words(connection))
    }

    /// The dead letters of a sink.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn dead_letters(&mut self, sink: &str, page: &Page) -> Result<Vec<DeadLetter>, Error> {
        self.at_once(|connection, _, _| read::dead_letters(connection, sink, page))
    }

    /// The sinks, by name.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn sinks(&mut self) -> Result<Vec<Sink>, Error> {
        self.at_once(|connection, _, _| read::sinks(connection))
    }

    /// The kinds that the history has seen, with the plural name of the resource of each.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn kinds(&mut self) -> Result<Vec<(Gvk, String)>, Error> {
        self.at_once(|connection, _, _| read::all_kinds(connection))
    }

    /// The paths at which anything changed.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn paths(&mut self) -> Result<Vec<String>, Error> {
        self.at_once(|connection, _, _| read::all_paths(connection))
    }

    /// The number and the time of the last record; `None` in an empty history.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn last(&mut self) -> Result<Option<(Number, Timestamp)>, Error> {
        self.at_once(|connection, _, _| read::last(connection))
    }

    /// Since when the history knows everything that it was given: everything that was removed is older. `None` in an empty history.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn complete_since(&mut self) -> Result<Option<Timestamp>, Error> {
        self.at_once(|connection, _, _| read::complete_since(connection))
    }

    /// Since when the history has all Events, where some of them were removed before the changes of their time.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn events_since(&mut self) -> Result<Option<Timestamp>, Error> {
        self.at_once(|connection, _, _| read::events_since(connection))
    }

    /// The plan of a run of [`History::retain`]: the records that `retention` does not keep, but no more than those of
    /// the oldest day, as recorded. A clock that jumps ahead removes no more.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn plan(&mut self, retention: &Retention, now: Timestamp) -> Result<Plan, Error> {
        self.at_once(|connection, _, _| retain::plan(connection, retention, now))
    }

    /// The size of the file, and of the log beside it.
    pub fn bytes(path: &Path) -> u64 {
        let files = [path.to_owned(), schema::beside(path, "-wal")];
        files.iter().filter_map(|file| Some(file.metadata().ok()?.len())).sum()
    }

    /// How much happened between each two of these times, of what the filter takes. The filter's own times do not count, nor do gaps and
    /// Events. The latest 20,000 changes are counted one by one ([`Survey::counted_since`]).
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn survey(&mut self, filter: &Filter, times: &[Timestamp]) -> Result<Survey, Error> {
        self.at_once(|connection, _, _| survey::survey(connection, filter, times))
    }

    /// How much is in the history.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn size(&mut self) -> Result<Size, Error> {
        let bytes = Self::bytes(&self.path);
        self.at_once(|connection, _, _| read::size(connection, bytes))
    }

    /// How many records come after this one.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn count_after(&mut self, number: Number) -> Result<u64, Error> {
        self.at_once(|connection, _, _| read::count_after(connection, number))
    }

    /// Reads everything, and compares it with its checksums and indexes. Takes about as long as writing it did.
    ///
    /// # Errors
    ///
    /// When the file cannot be read. Damaged content is no error: it is in the result.
    pub fn check(&mut self) -> Result<Checked, Error> {
        self.at_once(|connection, codec, _| verify::check(connection, codec))
    }

    /// Copies everything that is committed into a new file, while others read and write.
    ///
    /// # Errors
    ///
    /// When the new file exists, or cannot be written.
    pub fn back_up(&mut self, to: impl AsRef<Path>) -> Result<(), Error> {
        let to = to.as_ref();
        let failed =
            |source: Box<dyn std::error::Error + Send + Sync>| Error::Io { path: to.to_owned(), source };
        if to.exists() {
            return Err(failed("the file exists already".into()));
        }
        schema::back_up(&self.connection, to, &mut |_| {}).map_err(|error| Fault::from(error).at(to))
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "History({})", self.path.display())
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reader({})", self.path.display())
    }
}

#[cfg(test)]
mod tests;
