//! Reads a history.

#[cfg(feature = "postgres")]
mod archive;
mod documents;
mod opening;
mod retention;
mod users;

pub use opening::ask_all;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::ops::{ControlFlow, Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::Connection;
use serde_json::Value;

use crate::blame::{Blame, Blaming, Field};
use crate::error::{Error, Place};
use crate::filter::{At, Filter, KindName, Page, Scope};
use crate::mask::Mask;
use crate::patience::Patience;
#[cfg(feature = "postgres")]
use crate::postgres::session::Role;
#[cfg(feature = "postgres")]
use crate::postgres::{self, Address};
use crate::record::{Gap, Gvk, Incarnation, Number, ObjectId, Version};
use crate::report::{
    Checked, Cluster, DeadLetter, Ids, Instant as Until, Keys, Moment, Overview, Present, Records, Sink,
    Size, Standing,
};
use crate::sight::Sight;
use crate::sql::codec::Codec;
use crate::sql::db::{Db, Purpose};
use crate::sql::fault::{Fault, Outcome};
use crate::sql::read::{self, Lens};
use crate::sql::sight::{self, Tenancies};
use crate::sql::{overview, states, stories, survey, times, values, verify};
use crate::sqlite::schema;
use crate::story::StoredStory;
use crate::survey::Survey;

/// Reads a history, while others read and one writes. Each answer is of one moment.
pub struct Reader {
    place: Place,
    session: Session,
    codec: Codec,
    lens: Lens,
    /// When the server made objects, by their ids and first numbers: a few of those that a limit had to look at.
    made: HashMap<(i64, i64), Option<Timestamp>>,
}

/// SQLite looks whether somebody waits after so many steps of its machine.
const STEPS: i32 = 10_000;

/// A connection for reading.
enum Session {
    File {
        path: PathBuf,
        connection: Connection,
    },
    #[cfg(feature = "postgres")]
    Postgres(Box<postgres::session::Session>, Address, Role),
}

impl Session {
    fn db(&self) -> Db<'_> {
        match self {
            Self::File { connection, .. } => Db(connection),
            #[cfg(feature = "postgres")]
            Self::Postgres(session, ..) => Db(&**session),
        }
    }

    /// Ends questions for which nobody waits.
    fn wait(&mut self, patience: &Patience) -> Outcome<()> {
        match self {
            Self::File { connection, .. } => {
                let patience = patience.clone();
                Ok(connection.progress_handler(STEPS, Some(move || patience.has_ended()))?)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(session, ..) => {
                session.until(patience.deadline);
                Ok(())
            }
        }
    }
}

impl Reader {
    /// Ends questions with [`Error::Late`] that are not answered when patience ends. The content that is being unpacked then delays the error
    /// a little, as does a statement of a database where patience has no deadline.
    ///
    /// # Errors
    ///
    /// When the database does not take the deadline.
    pub fn wait(&mut self, patience: &Patience) -> Result<(), Error> {
        self.codec.patience = patience.clone();
        self.session.wait(patience).map_err(|fault| fault.at(self.place.clone()))
    }

    /// A number that is another one once something was written to the history. Those of two readers say nothing about each other.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn revision(&mut self) -> Result<i64, Error> {
        self.at_once(|db, _, _| db.revision())
    }

    /// From now on, records and versions are read without what the mask takes out.
    pub fn mask(&mut self, mask: Arc<dyn Mask>) {
        self.lens.mask = Some(mask);
    }

    /// Asks several questions at one moment of the history.
    fn at_once<T>(&mut self, ask: impl FnOnce(Db<'_>, &mut Codec, &Lens) -> Outcome<T>) -> Result<T, Error> {
        if self.codec.patience.has_ended() {
            return Err(Error::Late);
        }
        let answer = self.session.db().reading(|db| ask(db, &mut self.codec, &self.lens));
        answer.map_err(|fault| self.failed(fault))
    }

    /// A connection that has ended is made again for the next question.
    fn failed(&mut self, fault: Fault) -> Error {
        #[cfg(feature = "postgres")]
        if fault.is_unanswered()
            && let Session::Postgres(session, address, role) = &mut self.session
            // Without its views, a limited reader would see everything: it stays as it is.
            && !self.lens.is_limited
            && let Ok(link) = postgres::connect(address, *role)
            && let Ok(again) = session.again(link)
        {
            **session = again;
        }
        fault.at(self.place.clone())
    }

    /// The cluster that this is the history of.
    ///
    /// # Errors
    ///
    /// As each method here: when the file cannot be read, or is damaged.
    pub fn cluster(&mut self) -> Result<Cluster, Error> {
        self.session.db().cluster().map_err(|fault| self.failed(fault))
    }

    /// Changes, and gaps if they are asked for.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn records(&mut self, filter: &Filter, page: &Page) -> Result<Records, Error> {
        self.at_once(|db, codec, lens| read::records(db, codec, lens, filter, page))
    }

    /// The records that a sink has not taken yet, the oldest first: at most this many.
    ///
    /// # Errors
    ///
    /// When there is no such sink, the file cannot be read, or is damaged.
    pub fn pending(&mut self, sink: &str, limit: usize) -> Result<Records, Error> {
        self.at_once(|db, codec, lens| {
            let sinks = read::sinks(db)?;
            let found = sinks.iter().find(|it| it.name == sink);
            let found = found.ok_or_else(|| Fault::NotFound(format!("sink {sink}")))?;
            let filter = Filter { gaps: true, ..Filter::default() };
            let page = Page::oldest(limit).after(found.position);
            read::records(db, codec, lens, &filter, &page)
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
        self.at_once(|db, _, lens| {
            let mut gaps = read::gaps(db, scope, from, to, page, page.limit)?;
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
        self.at_once(|db, _, _| states::incarnations(db, scope))
    }

    /// One version of an incarnation; `None` when the history does not have it.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn version(&mut self, incarnation: &Incarnation, at: &At) -> Result<Option<Version>, Error> {
        self.at_once(|db, codec, lens| states::version(db, codec, lens, incarnation, at))
    }

    /// The version of a record; `None` when the history does not have it (any more), and for a gap.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn version_of(&mut self, number: Number) -> Result<Option<Version>, Error> {
        self.at_once(|db, codec, lens| states::numbered(db, codec, lens, number))
    }

    /// The version of the same object before the one of this record, as far as the history has it.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn version_before(&mut self, number: Number) -> Result<Option<Version>, Error> {
        self.at_once(|db, codec, lens| states::before(db, codec, lens, number))
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
        self.at_once(|db, _, _| {
            let filter = Filter { scope: scope.clone(), from, to, ..Filter::default() };
            states::described(db, &read::changed(db, &filter)?)
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
        self.at_once(|db, codec, lens| states::versions(db, codec, lens, incarnation, &mut visit))
    }

    /// The objects of a scope at a time, or now, by namespace and name: [`Reader::states`] reads them, some at a time. An object
    /// that was gone by then costs nothing.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn present(&mut self, scope: &Scope, at: Option<Timestamp>) -> Result<Present, Error> {
        self.at_once(|db, _, _| states::present(db, scope, at))
    }

    /// The moment of a time; `None` before the first version.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn moment(&mut self, time: Timestamp) -> Result<Option<Moment>, Error> {
        self.at_once(|db, _, _| {
            let last = match Until::at(db, time)? {
                Some(Until { last: i64::MAX, .. }) => read::last(db)?.map(|(last, _)| last),
                instant => instant.map(|instant| values::number(instant.last)),
            };
            Ok(last.map(|number| Moment { number, time }))
        })
    }

    /// The moment after a record; `None` before the first version, and after the last record.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn moment_after(&mut self, number: Number) -> Result<Option<Moment>, Error> {
        self.at_once(|db, _, _| {
            let is_there = read::last(db)?.is_some_and(|(last, _)| number <= last);
            let time = if is_there { times::time_of(db, number)? } else { None };
            Ok(time.map(|time| Moment { number, time }))
        })
    }

    /// The objects of a scope at a moment, in the order of API servers.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn keys(&mut self, scope: &Scope, at: Moment) -> Result<Keys, Error> {
        self.at_once(|db, _, _| states::keys(db, scope, at))
    }

    /// The states of some of these objects, without those that retention has removed since; where they are those of now, also
    /// without those that were deleted since. Their [`change`](Version::change) is `None`.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn states(&mut self, present: &Present, some: Range<usize>) -> Result<Vec<Version>, Error> {
        self.at_once(|db, codec, lens| states::of(db, codec, lens, present, some, false))
    }

    /// The states of all objects of a scope at a time, or now, where these are few: all of them are in memory.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn state(&mut self, scope: &Scope, at: Option<Timestamp>) -> Result<Vec<Version>, Error> {
        self.at_once(|db, codec, lens| {
            let present = states::present(db, scope, at)?;
            states::of(db, codec, lens, &present, 0..present.len(), true)
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
        self.at_once(|db, _, _| read::ids(db))
    }

    /// Up to which resourceVersion the history has each resource (`deployments.apps`).
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn positions(&mut self) -> Result<BTreeMap<String, String>, Error> {
        self.at_once(|db, _, _| read::positions(db))
    }

    /// The writer's notes ([`Batch::note`](crate::Batch::note)), by name.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn notes(&mut self) -> Result<BTreeMap<String, String>, Error> {
        self.at_once(|db, _, _| read::notes(db))
    }

    /// The present state of the writer: its notes and positions, and the last record.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn standing(&mut self) -> Result<Standing, Error> {
        self.at_once(|db, _, lens| overview::standing(db, lens))
    }

    /// The history in a line: who writes it, and how much. Changes are counted from this time on.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn overview(&mut self, since: Timestamp) -> Result<Overview, Error> {
        self.at_once(|db, _, lens| overview::overview(db, lens, since))
    }

    /// The prints of hidden values ([`Batch::print`](crate::Batch::print)) with their namespaces, the oldest first.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn prints(&mut self) -> Result<Vec<(String, Vec<u8>)>, Error> {
        self.at_once(|db, _, _| read::prints(db))
    }

    /// The names of all objects, namespaces and managers.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn words(&mut self) -> Result<Vec<String>, Error> {
        self.at_once(|db, _, _| read::words(db))
    }

    /// The dead letters of a sink.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn dead_letters(&mut self, sink: &str, page: &Page) -> Result<Vec<DeadLetter>, Error> {
        self.at_once(|db, _, _| read::dead_letters(db, sink, page))
    }

    /// The sinks, by name.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn sinks(&mut self) -> Result<Vec<Sink>, Error> {
        self.at_once(|db, _, _| read::sinks(db))
    }

    /// The kinds that the history has seen, with the plural name of the resource of each.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn kinds(&mut self) -> Result<Vec<(Gvk, String)>, Error> {
        self.at_once(|db, _, _| read::all_kinds(db))
    }

    /// The paths at which anything changed.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn paths(&mut self) -> Result<Vec<String>, Error> {
        self.at_once(|db, _, _| read::all_paths(db))
    }

    /// The number and the time of the last record; `None` in an empty history.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn last(&mut self) -> Result<Option<(Number, Timestamp)>, Error> {
        self.at_once(|db, _, _| read::last(db))
    }

    /// Since when the history knows everything that it was given: everything that was removed is older. `None` in an empty history.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn complete_since(&mut self) -> Result<Option<Timestamp>, Error> {
        self.at_once(|db, _, _| read::complete_since(db))
    }

    /// Since when the history has all Events, where some of them were removed before the changes of their time.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn events_since(&mut self) -> Result<Option<Timestamp>, Error> {
        self.at_once(|db, _, _| read::events_since(db))
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
        self.at_once(|db, _, _| survey::survey(db, filter, times))
    }

    /// How much is in the history.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn size(&mut self) -> Result<Size, Error> {
        let bytes = match &self.session {
            Session::File { path, .. } => Self::bytes(path),
            #[cfg(feature = "postgres")]
            Session::Postgres(..) => {
                self.session.db().used_bytes().map_err(|fault| fault.at(self.place.clone()))?
            }
        };
        self.at_once(|db, _, _| read::size(db, bytes))
    }

    /// How many records come after this one.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn count_after(&mut self, number: Number) -> Result<u64, Error> {
        self.at_once(|db, _, _| read::count_after(db, number))
    }

    /// Reads everything, and compares it with its checksums and indexes. Takes about as long as writing it did.
    ///
    /// # Errors
    ///
    /// When the file cannot be read. Damaged content is no error: it is in the result.
    pub fn check(&mut self) -> Result<Checked, Error> {
        self.at_once(|db, codec, _| verify::check(db, codec))
    }

    /// Copies everything that is committed into a new file, while others read and write.
    ///
    /// # Errors
    ///
    /// When the new file exists, or cannot be written.
    pub fn back_up(&mut self, to: impl AsRef<Path>) -> Result<(), Error> {
        let to = to.as_ref();
        schema::is_absent(to)?;
        match &self.session {
            Session::File { connection, .. } => {
                schema::back_up(connection, to, &mut |_| {}).map_err(|error| Fault::from(error).at(to))
            }
            #[cfg(feature = "postgres")]
            Session::Postgres(..) => Err(Error::Io {
                place: self.place.clone(),
                source: "a database is backed up with `pg_dump`".into(),
            }),
        }
    }

    /// The first number that a record of this time or later may have.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn first_since(&mut self, time: Timestamp) -> Result<Number, Error> {
        self.at_once(|db, _, _| times::first_since(db, time))
    }

    /// The time of the last version up to a number; `None` before the first one.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn time_of(&mut self, number: Number) -> Result<Option<Timestamp>, Error> {
        self.at_once(|db, _, _| times::time_of(db, number))
    }

    /// The object with this uid in a namespace, or in none, then its controller, and so on upwards: those that were known by this
    /// record. Of a controller that was not, the uid follows.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn lineage(
        &mut self,
        uid: &str,
        namespace: Option<&str>,
        by: Number,
    ) -> Result<(Vec<ObjectId>, Option<String>), Error> {
        self.at_once(|db, _, _| stories::lineage(db, uid, namespace, by))
    }

    /// The objects that this one controls, or has controlled, by kind and name: at most this many.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn controlled(&mut self, by: &ObjectId, most: usize) -> Result<Vec<Incarnation>, Error> {
        self.at_once(|db, _, _| stories::controlled(db, by, most))
    }

    /// The version of the fold that has stored stories here, and the record that it has come to.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn folded(&mut self) -> Result<(u32, Number), Error> {
        self.at_once(|db, _, _| stories::place(db))
    }

    /// The stories that may go on, the oldest first.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn open_stories(&mut self) -> Result<Vec<StoredStory>, Error> {
        self.at_once(|db, _, _| stories::open(db))
    }

    /// One story.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn story(&mut self, id: Number) -> Result<Option<StoredStory>, Error> {
        self.at_once(|db, _, _| stories::one(db, id))
    }

    /// Which of these records belong to a story, and to which.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn members(&mut self, of: RangeInclusive<Number>) -> Result<BTreeMap<Number, Number>, Error> {
        self.at_once(|db, _, _| stories::members(db, of))
    }

    /// The records of a story, the oldest first.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn members_of(&mut self, story: Number) -> Result<Vec<Number>, Error> {
        self.at_once(|db, _, _| stories::members_of(db, story))
    }

    /// From now on, the reader knows of no objects but those of a sight: neither of them nor of what happened to them, and not how many
    /// there are. `None` ends that. Names of namespaces and managers are found by those who know them; the number and the time of the last
    /// record are known to all.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn limit(&mut self, sight: Option<&Sight>) -> Result<(), Error> {
        let (codec, made) = (&mut self.codec, &mut self.made);
        let mut tenancies = Tenancies { codec, made, since: HashMap::new() };
        let limited = self.session.db().within(Purpose::Limit, |db| sight::limit(db, &mut tenancies, sight));
        self.lens.is_limited = sight.is_some();
        limited.map_err(|fault| fault.at(self.place.clone()))
    }

    /// The resources of the history, each with the namespaces of its objects; without one for those outside of namespaces.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn places(&mut self) -> Result<BTreeMap<KindName, BTreeSet<Option<String>>>, Error> {
        self.at_once(|db, _, _| sight::places(db))
    }

    /// Whether the reader knows a part of the history alone.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn is_limited(&mut self) -> Result<bool, Error> {
        self.at_once(|db, _, _| sight::is_limited(db))
    }

    /// Whether none of these records is of an object beyond the sight. Of a record that was removed nobody knows that any more.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn sees(&mut self, numbers: impl IntoIterator<Item = Number>) -> Result<bool, Error> {
        self.at_once(|db, _, _| sight::sees(db, numbers))
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reader({})", self.place)
    }
}
