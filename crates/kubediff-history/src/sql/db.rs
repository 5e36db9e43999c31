//! The database that questions are asked of: one SQL, which each database understands after a few replacements.
//!
//! Numbers in columns are 64-bit integers, times are microseconds since 1970. Conditions on `main.versions` are about all versions, those
//! on `versions` about those that a limited reader may see.

use std::ops::ControlFlow;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Transaction, TransactionBehavior, params_from_iter};

use super::fault::{Fault, Outcome};
#[cfg(feature = "postgres")]
use crate::postgres::session::{Integer, Session};
use crate::report::Cluster;
use crate::sqlite::schema;

/// A connection.
#[derive(Clone, Copy)]
pub(crate) enum Db<'a> {
    Sqlite(&'a Connection),
    #[cfg(feature = "postgres")]
    Postgres(&'a Session),
}

/// A parameter of a statement.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Integer(Option<i64>),
    Text(Option<String>),
    Bytes(Vec<u8>),
    /// Columns of many rows, for PostgreSQL.
    #[cfg(feature = "postgres")]
    Integers(Vec<Option<i64>>),
    #[cfg(feature = "postgres")]
    Texts(Vec<Option<String>>),
    #[cfg(feature = "postgres")]
    Blobs(Vec<Option<Vec<u8>>>),
}

/// A row of a result.
pub(crate) enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    #[cfg(feature = "postgres")]
    Postgres(&'a tokio_postgres::Row),
}

/// The type of a column.
pub(crate) trait Column: Sized {
    /// Reads it.
    fn read(row: &Row<'_>, at: usize) -> Outcome<Self>;
}

/// A column that each database reads by itself.
macro_rules! column {
    ($($type:ty),*) => { $(
        impl Column for $type {
            fn read(row: &Row<'_>, at: usize) -> Outcome<Self> {
                match row {
                    Row::Sqlite(row) => Ok(row.get(at)?),
                    #[cfg(feature = "postgres")]
                    Row::Postgres(row) => Ok(row.try_get(at)?),
                }
            }
        }
    )* };
}

column!(String, Option<String>, Vec<u8>, bool);

impl Column for Option<i64> {
    fn read(row: &Row<'_>, at: usize) -> Outcome<Self> {
        match row {
            Row::Sqlite(row) => Ok(row.get(at)?),
            #[cfg(feature = "postgres")]
            Row::Postgres(row) => Ok(row.try_get::<_, Option<Integer>>(at)?.map(|Integer(number)| number)),
        }
    }
}

impl Column for i64 {
    fn read(row: &Row<'_>, at: usize) -> Outcome<Self> {
        row.get::<Option<i64>>(at)?.ok_or_else(|| Fault::damaged("a number is missing"))
    }
}

/// The parameters of a statement, in order.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::db::Value::from($value)),*] };
}
pub(crate) use values;

impl<'a> Db<'a> {
    /// Visits the rows of a result until `visit` breaks.
    pub(crate) fn each(
        self,
        sql: &str,
        values: &[Value],
        mut visit: impl FnMut(&Row<'_>) -> Outcome<ControlFlow<()>>,
    ) -> Outcome<()> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query(params_from_iter(values))?;
                while let Some(row) = rows.next()? {
                    if visit(&Row::Sqlite(row))?.is_break() {
                        break;
                    }
                }
                Ok(())
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => {
                for row in session.ask(sql, values)?.rows {
                    if visit(&Row::Postgres(&row))?.is_break() {
                        break;
                    }
                }
                Ok(())
            }
        }
    }

    /// All rows of a result.
    pub(crate) fn all<T>(
        self,
        sql: &str,
        values: &[Value],
        mut read: impl FnMut(&Row<'_>) -> Outcome<T>,
    ) -> Outcome<Vec<T>> {
        let mut found = Vec::new();
        self.each(sql, values, |row| {
            found.push(read(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// The first row of a result.
    pub(crate) fn first<T>(
        self,
        sql: &str,
        values: &[Value],
        mut read: impl FnMut(&Row<'_>) -> Outcome<T>,
    ) -> Outcome<Option<T>> {
        let mut found = None;
        self.each(sql, values, |row| {
            found = Some(read(row)?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// The first column of the first row of a result, which has one.
    pub(crate) fn one<T: Column>(self, sql: &str, values: &[Value]) -> Outcome<T> {
        let found = self.first(sql, values, |row| row.get(0))?;
        found.ok_or_else(|| Fault::damaged("a row is missing"))
    }

    /// Changes rows. Returns how many.
    pub(crate) fn run(self, sql: &str, values: &[Value]) -> Outcome<u64> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                Ok(statement.execute(params_from_iter(values))? as u64)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => Ok(session.ask(sql, values)?.changed),
        }
    }

    /// Runs statements without parameters.
    pub(crate) fn statements(self, sql: &str) -> Outcome<()> {
        match self {
            Self::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => session.statements(sql),
        }
    }

    /// The cluster that the history is of.
    pub(crate) fn cluster(self) -> Outcome<Cluster> {
        match self {
            Self::Sqlite(connection) => schema::cluster_of(connection),
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => Ok(session.cluster.clone()),
        }
    }

    /// A number that is another one once somebody else has written something.
    pub(crate) fn revision(self) -> Outcome<i64> {
        match self {
            Self::Sqlite(connection) => {
                Ok(connection.pragma_query_value(None, "data_version", |row| row.get(0))?)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => session.revision(),
        }
    }

    /// The question whether views stand before the tables.
    pub(crate) fn has_views(self) -> &'static str {
        match self {
            Self::Sqlite(_) => "SELECT EXISTS (SELECT 1 FROM temp.sqlite_schema WHERE name = 'objects')",
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => {
                "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname = 'objects' AND relnamespace = pg_my_temp_schema())"
            }
        }
    }

    /// Gives back the room of what retention has removed, as far as that is free.
    pub(crate) fn reclaim(self) -> Outcome<()> {
        match self {
            // It is used again.
            Self::Sqlite(_) => Ok(()),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => self.all("SELECT drop_days()", &[], |_| Ok(())).map(drop),
        }
    }

    /// Empties the log beside a file. Returns whether nothing is left in it.
    pub(crate) fn empty_log(self) -> Outcome<bool> {
        match self {
            Self::Sqlite(_) => Ok(self.one::<i64>("PRAGMA wal_checkpoint(truncate)", &[])? == 0),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => self.writing(|db| {
                // Versions that were masked share nothing any more.
                let sql = "DELETE FROM contents c WHERE NOT EXISTS (SELECT 1 FROM versions v WHERE v.day = c.day AND v.content = c.id)";
                db.run(sql, &[])?;
                Ok(true)
            }),
        }
    }

    /// Gives up the memory of pages.
    pub(crate) fn shrink(self) -> Outcome<()> {
        match self {
            Self::Sqlite(_) => self.statements("PRAGMA shrink_memory"),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Ok(()),
        }
    }

    /// The bytes that the history needs.
    pub(crate) fn used_bytes(self) -> Outcome<u64> {
        match self {
            Self::Sqlite(connection) => {
                let of = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
                Ok((of("page_count")? - of("freelist_count")?) * of("page_size")?)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => session.used_bytes(),
        }
    }

    /// What the database itself finds wrong with its files.
    pub(crate) fn unsound(self) -> Outcome<Vec<String>> {
        if !self.is_file() {
            return Ok(Vec::new());
        }
        let lines = self.all("PRAGMA integrity_check(100)", &[], |row| row.get::<String>(0))?;
        Ok(lines.into_iter().filter(|line| line != "ok").map(|line| format!("SQLite: {line}")).collect())
    }

    /// Whether it is a file. A database has no tables of its own for what has a name or path: its versions have tags.
    pub(crate) fn is_file(self) -> bool {
        matches!(self, Self::Sqlite(_))
    }

    /// The id of the history, as 32 digits.
    pub(crate) fn log(self) -> Outcome<String> {
        match self {
            Self::Sqlite(_) => self.one("SELECT value FROM meta WHERE name = 'log'", &[]),
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => Ok(session.id.replace('-', "")),
        }
    }

    /// Makes temporary views and tables, or changes them, all of it or nothing.
    pub(crate) fn limiting<T>(self, change: impl FnOnce(Self) -> Outcome<T>) -> Outcome<T> {
        match self {
            Self::Sqlite(connection) => {
                // The file system may be read-only.
                connection.pragma_update(None, "temp_store", "memory")?;
                let transaction = connection.unchecked_transaction()?;
                let changed = change(self)?;
                transaction.commit()?;
                Ok(changed)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => session.transaction("BEGIN", || change(self)),
        }
    }

    /// Asks several questions at one moment.
    pub(crate) fn reading<T>(self, ask: impl FnOnce(Self) -> Outcome<T>) -> Outcome<T> {
        match self {
            Self::Sqlite(connection) => {
                let _transaction = connection.unchecked_transaction()?;
                ask(self)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => session.reading(|| ask(self)),
        }
    }

    /// Changes rows, all of it or nothing.
    pub(crate) fn writing<T>(self, write: impl FnOnce(Self) -> Outcome<T>) -> Outcome<T> {
        match self {
            Self::Sqlite(connection) => {
                // The write lock is taken now, where SQLite waits for it. A transaction that begins by reading fails when it comes to write
                // and another writer was there in the meantime.
                let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
                let written = write(self)?;
                transaction.commit()?;
                Ok(written)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(session) => session.writing(|| write(self)),
        }
    }
}

impl Row<'_> {
    /// A column.
    pub(crate) fn get<T: Column>(&self, at: usize) -> Outcome<T> {
        T::read(self, at)
    }

    /// A number that cannot be negative.
    pub(crate) fn count<T: TryFrom<i64>>(&self, at: usize) -> Outcome<T> {
        let out_of_range = |_| Fault::damaged("a number is out of range");
        T::try_from(self.get::<i64>(at)?).map_err(out_of_range)
    }
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Integer(number) => number.map_or(ValueRef::Null, ValueRef::Integer),
            Self::Text(text) => text.as_ref().map_or(ValueRef::Null, |text| ValueRef::Text(text.as_bytes())),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
            #[cfg(feature = "postgres")]
            Self::Integers(_) | Self::Texts(_) | Self::Blobs(_) => ValueRef::Null,
        }))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(Some(number))
    }
}

impl From<Option<i64>> for Value {
    fn from(number: Option<i64>) -> Self {
        Self::Integer(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Integer(Some(number.into()))
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Integer(Some(i64::try_from(number).unwrap_or(i64::MAX)))
    }
}

impl From<bool> for Value {
    fn from(is: bool) -> Self {
        Self::Integer(Some(is.into()))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(Some(text.clone()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        Self::Text(text.map(str::to_owned))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}
