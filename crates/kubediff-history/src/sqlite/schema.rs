//! The tables, and which files are opened.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::backup::{Backup, Progress, StepResult};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::error::Error;
use crate::report::{Cluster, Settings};
use crate::sql::db::Db;
use crate::sql::fault::{Fault, Outcome};
use crate::sql::links;

/// The format that this program writes.
pub(crate) const FORMAT: u32 = 5;
/// SQLite's `application_id`: "kdhi".
const APPLICATION: i32 = 0x6b64_6869;

/// From one format to the next one.
pub(crate) type Step = fn(&Transaction<'_>) -> Outcome<()>;
/// The last step leads to this program's format.
pub(crate) const STEPS: &[Step] = &[
    |transaction| Ok(transaction.execute_batch(SECOND)?),
    |transaction| {
        transaction.execute_batch(THIRD)?;
        transaction.execute_batch(ORDER)?;
        links::fill(Db(&**transaction))
    },
    |transaction| Ok(transaction.execute_batch(FOURTH)?),
    |transaction| Ok(transaction.execute_batch(FIFTH)?),
];

// A record's id is that of the history, the timeline, and its number: the timeline with the largest `first` up to the number.
// A print is a hash of a value that is hidden in objects, as the writer makes it; without the writer's key it says nothing.
const SECOND: &str = "
CREATE TABLE timelines (first INTEGER PRIMARY KEY, timeline INTEGER NOT NULL) STRICT;
INSERT INTO meta VALUES ('log', lower(hex(randomblob(16))));
CREATE TABLE prints (id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, print BLOB NOT NULL UNIQUE) STRICT;
CREATE TABLE scrubs (
    number INTEGER PRIMARY KEY, at INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, masked INTEGER NOT NULL,
    cause TEXT NOT NULL
) STRICT;
";

// An object was there from its `first` version on until it `ended`. One that has `returned` was deleted in between.
// Of the controlling owner, and of the object that an Event is about, it has the uid.
// Versions of Events have verbs of their own, above those of changes. They are gone up to `events_after`.
// No version from the number `ordered_from` on is earlier than the one before it. No version before that is later than `disordered_until`.
const THIRD: &str = "
ALTER TABLE objects ADD COLUMN first INTEGER NOT NULL DEFAULT 0;
ALTER TABLE objects ADD COLUMN returned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE objects ADD COLUMN owner TEXT;
ALTER TABLE objects ADD COLUMN about TEXT;
UPDATE objects SET first = coalesce((SELECT min(number) FROM versions WHERE object = objects.id), 0);
UPDATE objects SET returned = 1 WHERE id IN
    (SELECT v.object FROM versions v JOIN objects o ON o.id = v.object WHERE v.verb = 3 AND v.number IS NOT o.ended);
CREATE INDEX lives ON objects (family, ended, first, returned, namespace, name);
DROP INDEX versions_by_namespace;
CREATE INDEX versions_by_place ON versions (namespace, kind);
CREATE INDEX objects_by_owner ON objects (owner) WHERE owner IS NOT NULL;
CREATE INDEX objects_by_about ON objects (about) WHERE about IS NOT NULL;
CREATE INDEX versions_of_events ON versions (number) WHERE verb > 4;
INSERT INTO meta VALUES ('event_bytes', 0), ('events_after', 0);
";

/// From which number on times rise, found in the versions.
pub(super) const ORDER: &str = "
INSERT INTO meta SELECT 'ordered_from', coalesce(max(number), 0) FROM (SELECT number, observed_at, max(observed_at)
    OVER (ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest FROM versions) WHERE observed_at < latest;
INSERT INTO meta SELECT 'disordered_until', max(observed_at) FROM versions
    WHERE number < (SELECT value FROM meta WHERE name = 'ordered_from');
";

// A story is named by the record that it began with. A record belongs to one story, or to none. The fold of this version has come to the
// record `folded_to`.
const FOURTH: &str = "
CREATE TABLE stories (id INTEGER PRIMARY KEY, last INTEGER NOT NULL, is_open INTEGER NOT NULL, content TEXT NOT NULL) STRICT;
CREATE INDEX stories_by_end ON stories (last);
CREATE INDEX open_stories ON stories (id) WHERE is_open;
CREATE TABLE members (number INTEGER PRIMARY KEY, story INTEGER NOT NULL) STRICT;
CREATE INDEX members_by_story ON members (story);
CREATE INDEX kinds_by_family ON kinds (family);
INSERT INTO meta VALUES ('fold_version', 0), ('folded_to', 0);
";

// The users whose requests made changes, as JSON. A document is what the server says about itself, from the record `first` on.
const FIFTH: &str = "
CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE authors (number INTEGER PRIMARY KEY, author INTEGER NOT NULL, probable INTEGER NOT NULL) STRICT;
CREATE INDEX authors_by_user ON authors (author, number);
CREATE TABLE documents (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, first INTEGER NOT NULL, edition TEXT NOT NULL, length INTEGER NOT NULL, crc INTEGER NOT NULL,
    frame BLOB NOT NULL, UNIQUE (name, first)
) STRICT;
";

// A row of `versions` is one observed version, and the change that led to it unless `verb` is 0. Its content is `frame`:
// packed against the content of `base` followed by its own details; or, without a base, against a dictionary, with the
// shared content put in at `split`. Numbers of versions and gaps come from one sequence.
const TABLES: &str = "
CREATE TABLE meta (name TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;
CREATE TABLE kinds (
    id INTEGER PRIMARY KEY, family INTEGER NOT NULL, api_group TEXT NOT NULL, version TEXT NOT NULL, kind TEXT NOT NULL,
    plural TEXT NOT NULL, UNIQUE (api_group, plural, version, kind)
) STRICT;
CREATE TABLE namespaces (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE managers (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE paths (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE dictionaries (
    id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, purpose INTEGER NOT NULL, finalized INTEGER NOT NULL, crc INTEGER NOT NULL,
    bytes BLOB NOT NULL
) STRICT;
CREATE TABLE contents (
    id INTEGER PRIMARY KEY, crc INTEGER NOT NULL, length INTEGER NOT NULL, dictionary INTEGER NOT NULL, frame BLOB NOT NULL,
    uses INTEGER NOT NULL
) STRICT;
CREATE INDEX contents_by_crc ON contents (crc, length);
CREATE TABLE objects (
    id INTEGER PRIMARY KEY, family INTEGER NOT NULL, namespace INTEGER NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL,
    ended INTEGER, ended_at INTEGER,
    state_rv TEXT, state_at INTEGER, state_length INTEGER, state_crc INTEGER, state BLOB,
    UNIQUE (uid, family)
) STRICT;
CREATE INDEX objects_by_name ON objects (name, family, namespace);
CREATE INDEX objects_by_namespace ON objects (namespace);
CREATE INDEX objects_by_end ON objects (ended) WHERE ended IS NOT NULL;
CREATE TABLE versions (
    number INTEGER PRIMARY KEY, object INTEGER NOT NULL, kind INTEGER NOT NULL, namespace INTEGER NOT NULL,
    verb INTEGER NOT NULL, source INTEGER NOT NULL, observed_at INTEGER NOT NULL, rv TEXT NOT NULL, rv_before TEXT,
    base INTEGER NOT NULL, content INTEGER, split INTEGER, length INTEGER NOT NULL, crc INTEGER NOT NULL,
    dictionary INTEGER NOT NULL, detail_length INTEGER NOT NULL, detail_dictionary INTEGER NOT NULL,
    detail BLOB NOT NULL, frame BLOB NOT NULL
) STRICT;
CREATE INDEX versions_by_object ON versions (object);
CREATE INDEX versions_by_kind ON versions (kind);
CREATE INDEX versions_by_namespace ON versions (namespace);
CREATE INDEX versions_by_time ON versions (observed_at);
CREATE TABLE version_managers (manager INTEGER, number INTEGER, PRIMARY KEY (manager, number)) STRICT, WITHOUT ROWID;
CREATE TABLE version_paths (path INTEGER, number INTEGER, PRIMARY KEY (path, number)) STRICT, WITHOUT ROWID;
CREATE TABLE gaps (
    number INTEGER PRIMARY KEY, from_at INTEGER NOT NULL, to_at INTEGER NOT NULL, resource TEXT, reason TEXT NOT NULL
) STRICT;
CREATE TABLE positions (resource TEXT PRIMARY KEY, rv TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE sinks (name TEXT PRIMARY KEY, position INTEGER NOT NULL, lost INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE dead_letters (
    sink TEXT, number INTEGER, object INTEGER NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (sink, number)
) STRICT, WITHOUT ROWID;
";

/// The right to write to a file, of one process at a time. The lock is that of a file beside it: the kernel releases it with
/// the process, and SQLite's own locks are not touched.
#[derive(Debug)]
pub(crate) struct WriteLock(File);

impl Drop for WriteLock {
    /// A program that starts another one shares its open files with it until the other begins, and closing this one alone would
    /// leave the lock taken that long.
    fn drop(&mut self) {
        // A failure leaves what closing the file does.
        let _ = self.0.unlock();
    }
}

impl WriteLock {
    pub(super) fn take(path: &Path) -> Result<Self, Error> {
        // Another name of the file would be another lock, and another log.
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let names = names(&real);
        if names > 1 {
            return Err(Error::Linked { path: path.to_owned(), names });
        }
        let beside = beside(&real, "-lock");
        let failed = |source: std::io::Error| Error::Io { place: (&*beside).into(), source: source.into() };
        let file = File::options().write(true).create(true).truncate(false).open(&beside).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(std::fs::TryLockError::WouldBlock) => Err(Error::InUse { path: path.to_owned() }),
            Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

/// Makes the file, if there is none, for the eyes of its owner alone: it knows the cluster. Files beside it get the same mode.
pub(super) fn create(path: &Path) -> std::io::Result<()> {
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// The files that the names of a history, of its log, of its readers' shared memory and of its lock stand for. SQLite makes the log and the
/// shared memory with the first connection, and removes them with the last one.
pub(crate) struct Files {
    history: Option<(u64, u64)>,
    beside: [Option<(u64, u64)>; 3],
    length: u64,
}

impl Files {
    pub(crate) fn of(path: &Path) -> Self {
        // SQLite follows a link.
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let beside = ["-wal", "-shm", "-lock"].map(|end| identity(&beside(&real, end)));
        let length = path.metadata().map_or(0, |file| file.len());
        Self { history: identity(path), beside, length }
    }

    /// Whether the history itself is the former one, and nothing was cut off: only a checkpoint changes its length.
    pub(crate) fn has_history_of(&self, former: &Self) -> bool {
        self.history == former.history && self.length >= former.length
    }

    pub(crate) fn has_all_of(&self, former: &Self) -> bool {
        self.has_history_of(former) && self.beside == former.beside
    }
}

/// Which file a name stands for; `None` where files have no numbers.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    path.metadata().ok().map(|file| (file.dev(), file.ino()))
}

/// How many names a file has.
#[cfg(unix)]
fn names(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    path.metadata().map_or(0, |file| file.nlink())
}

#[cfg(not(unix))]
fn names(_: &Path) -> u64 {
    1
}

#[cfg(not(unix))]
fn identity(_: &Path) -> Option<(u64, u64)> {
    None
}

pub(crate) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}

/// An error for a new file that is there.
pub(crate) fn is_absent(file: &Path) -> Result<(), Error> {
    if file.exists() {
        let source = "the file exists already; remove it, or name another place".into();
        return Err(Error::Io { place: file.into(), source });
    }
    Ok(())
}

/// Opens a file for writing: makes it, or checks it and migrates it with `steps`, which lead to format `steps.len()`.
pub(crate) fn open(
    path: &Path,
    cluster: &Cluster,
    settings: &Settings,
    format: u32,
    steps: &[Step],
) -> Result<(Connection, WriteLock), Error> {
    let lock = WriteLock::take(path)?;
    create(path).map_err(|source| Error::Io { place: path.into(), source: source.into() })?;
    let failed = |fault: rusqlite::Error| Fault::from(fault).at(path);
    let mut connection = Connection::open(path).map_err(failed)?;
    match found(&connection).map_err(failed)? {
        Found::Nothing => {}
        Found::Foreign => return Err(Error::Foreign { place: path.into() }),
        Found::Format(found) if found > format => {
            return Err(Error::Newer { place: path.into(), found, known: format });
        }
        Found::Format(found) => {
            is_of(&connection, path, cluster)?;
            if found < format {
                migrate(&mut connection, path, (found, format), steps, &mut |_| {})?;
            }
        }
    }
    prepare(&mut connection, cluster, settings, format).map_err(failed)?;
    Ok((connection, lock))
}

/// An error for a file of another cluster.
fn is_of(connection: &Connection, path: &Path, cluster: &Cluster) -> Result<(), Error> {
    let of = cluster_of(connection).map_err(|fault| fault.at(path))?;
    if of.uid == cluster.uid {
        return Ok(());
    }
    Err(Error::OtherCluster { place: path.into(), found: of.uid, wanted: cluster.uid.clone() })
}

/// Opens a file for reading only.
pub(crate) fn open_for_reading(path: &Path) -> Result<Connection, Error> {
    if !path.exists() {
        return Err(Error::Missing { path: path.to_owned() });
    }
    let failed = |fault: rusqlite::Error| Fault::from(fault).at(path);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(Duration::from_secs(5)).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(64);
    match found(&connection).map_err(failed)? {
        Found::Nothing | Found::Foreign => Err(Error::Foreign { place: path.into() }),
        Found::Format(found) if found > FORMAT => {
            Err(Error::Newer { place: path.into(), found, known: FORMAT })
        }
        Found::Format(found) if found < FORMAT => Err(Error::Older { place: path.into(), found }),
        Found::Format(_) => Ok(connection),
    }
}

enum Found {
    Nothing,
    Foreign,
    Format(u32),
}

fn found(connection: &Connection) -> rusqlite::Result<Found> {
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if application == APPLICATION {
        let format = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        return Ok(Found::Format(format));
    }
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(if tables == 0 && application == 0 { Found::Nothing } else { Found::Foreign })
}

pub(crate) fn cluster_of(connection: &Connection) -> Outcome<Cluster> {
    let text = |name: &str| {
        let sql = "SELECT value FROM meta WHERE name = ?1";
        connection.query_row(sql, [name], |row| row.get::<_, Option<String>>(0)).optional()
    };
    let uid = text("cluster_uid")?.flatten().ok_or_else(|| Fault::damaged("it names no cluster"))?;
    Ok(Cluster { uid, name: text("cluster_name")?.flatten() })
}

/// From now on, records have ids that no copy of this file has given out: each writer begins a timeline, whose number is the
/// time. So neither a restored backup nor a file that another one replaces gives an id twice.
fn begin_timeline(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let now = Timestamp::now().as_millisecond();
    transaction.execute_batch(
        "DELETE FROM timelines WHERE first >= (SELECT value FROM meta WHERE name = 'next');
         DELETE FROM timelines WHERE first < (SELECT max(first) FROM timelines
             WHERE first <= (SELECT value FROM meta WHERE name = 'complete_after') + 1);",
    )?;
    transaction.execute(
        "INSERT INTO timelines SELECT (SELECT value FROM meta WHERE name = 'next'),
         max(?1, coalesce((SELECT max(timeline) + 1 FROM timelines), 1))",
        [now],
    )?;
    Ok(())
}

/// Migrates a file of an older format, and says where its backup is. `None` for a file of this format.
pub(crate) fn migrate_file(
    path: &Path,
    cluster: Option<&Cluster>,
    done: &mut dyn FnMut(u8),
) -> Result<Option<PathBuf>, Error> {
    if !path.exists() {
        return Err(Error::Missing { path: path.to_owned() });
    }
    let failed = |error| Fault::from(error).at(path);
    // A lock beside what is no history would be litter.
    let reading = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    match found(&reading).map_err(failed)? {
        Found::Nothing if cluster.is_some() => {}
        Found::Nothing | Found::Foreign => return Err(Error::Foreign { place: path.into() }),
        Found::Format(_) => {}
    }
    drop(reading);
    let _lock = WriteLock::take(path)?;
    let mut connection = Connection::open(path).map_err(failed)?;
    match found(&connection).map_err(failed)? {
        // Its writer is about to fill it.
        Found::Nothing if cluster.is_some() => Ok(None),
        Found::Nothing | Found::Foreign => Err(Error::Foreign { place: path.into() }),
        Found::Format(found) if found > FORMAT => {
            Err(Error::Newer { place: path.into(), found, known: FORMAT })
        }
        Found::Format(FORMAT) => Ok(None),
        Found::Format(found) => {
            cluster.map_or(Ok(()), |cluster| is_of(&connection, path, cluster))?;
            migrate(&mut connection, path, (found, FORMAT), STEPS, done).map(Some)
        }
    }
}

/// Copies the file beside itself, then takes the steps in one transaction. Returns where the copy is.
fn migrate(
    connection: &mut Connection,
    path: &Path,
    (from, to): (u32, u32),
    steps: &[Step],
    done: &mut dyn FnMut(u8),
) -> Result<PathBuf, Error> {
    let missing = usize::try_from(to - from).ok().and_then(|count| steps.len().checked_sub(count));
    let Some(steps) = missing.and_then(|first| steps.get(first..)) else {
        return Err(Error::Older { place: path.into(), found: from });
    };
    let failed = |fault: rusqlite::Error| Fault::from(fault).at(path);
    let name = |number: u32| match number {
        1 => beside(path, &format!("-format-{from}")),
        number => beside(path, &format!("-format-{from}.{number}")),
    };
    // A copy that is there may be of another file.
    let Some(copy) = (1..).map(name).find(|copy| !copy.exists()) else {
        return Err(Error::Older { place: path.into(), found: from });
    };
    let part = beside(path, "-format-part");
    let bytes: u64 = connection
        .query_row("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", [], |row| {
            row.get(0)
        })
        .map_err(failed)?;
    if let Some(missing) = room(path).and_then(|room| bytes.checked_sub(room)).filter(|missing| *missing > 0)
    {
        return Err(Error::NoRoom { path: path.to_owned(), found: from, missing });
    }
    back_up(connection, &part, done).map_err(failed)?;
    std::fs::rename(&part, &copy)
        .map_err(|source| Error::Io { place: (&*copy).into(), source: source.into() })?;
    let transaction = connection.transaction().map_err(failed)?;
    for step in steps {
        step(&transaction).map_err(|fault| fault.at(path))?;
    }
    transaction.pragma_update(None, "user_version", to).map_err(failed)?;
    transaction.commit().map_err(failed)?;
    Ok(copy)
}

/// How many bytes the disk of a file has left; `None` where that is unknown.
fn room(path: &Path) -> Option<u64> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Copies everything that is committed, while others read and write, into a new file that is complete by itself.
pub(crate) fn back_up(from: &Connection, path: &Path, done: &mut dyn FnMut(u8)) -> rusqlite::Result<()> {
    create(path).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let mut copy = Connection::open(path)?;
    let backup = Backup::new(from, &mut copy)?;
    while backup.step(1_000)? != StepResult::Done {
        let Progress { remaining, pagecount } = backup.progress();
        let copied = i64::from(pagecount - remaining) * 100 / i64::from(pagecount).max(1);
        done(u8::try_from(copied).unwrap_or(100));
    }
    drop(backup);
    copy.pragma_update(None, "journal_mode", "delete")
}

pub(super) fn prepare(
    connection: &mut Connection,
    cluster: &Cluster,
    settings: &Settings,
    format: u32,
) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "journal_mode", "wal")?;
    // A commit is on the disk when it returns: a batch is one, so that this costs little.
    connection.pragma_update(None, "synchronous", "full")?;
    // Content that a scrub or retention takes out is nowhere in the file, not even in its free pages.
    connection.pragma_update(None, "secure_delete", "on")?;
    connection.pragma_update(None, "cache_size", -32_768)?;
    connection.pragma_update(None, "wal_autocheckpoint", 4_000)?;
    connection.pragma_update(None, "journal_size_limit", 32 << 20)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    if matches!(found(&transaction)?, Found::Nothing) {
        transaction.execute_batch(TABLES)?;
        transaction.execute_batch(SECOND)?;
        transaction.execute_batch(THIRD)?;
        transaction.execute_batch(ORDER)?;
        transaction.execute_batch(FOURTH)?;
        transaction.execute_batch(FIFTH)?;
        transaction.execute(
            "INSERT INTO meta VALUES ('cluster_uid', ?1), ('next', 1), ('complete_after', 0)",
            [&cluster.uid],
        )?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", format)?;
    }
    if let Some(name) = &cluster.name {
        transaction.execute(
            "INSERT OR REPLACE INTO meta SELECT 'cluster_name', ?1 WHERE NOT EXISTS
             (SELECT 1 FROM meta WHERE name = 'cluster_name' AND value = ?1)",
            params![name],
        )?;
    }
    begin_timeline(&transaction)?;
    transaction.commit()?;
    let page: u64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    if let Some(most) = settings.most_bytes {
        connection.pragma_update(None, "max_page_count", most / page.max(1))?;
    }
    Ok(())
}
