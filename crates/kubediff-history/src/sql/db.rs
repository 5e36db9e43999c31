//! The database that questions are asked of: one SQL, which each database understands after a few replacements.
//!
//! Numbers in columns are 64-bit integers, times are microseconds since 1970. Conditions on `main.versions` are about all versions, those
//! on `versions` about those that a limited reader may see.

use std::ops::ControlFlow;

use rusqlite::types::{FromSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Transaction, TransactionBehavior, params_from_iter};

use super::fault::{Fault, Outcome};
use crate::report::Cluster;
use crate::sqlite::schema;

/// A connection.
#[derive(Clone, Copy)]
pub(crate) enum Db<'a> {
    Sqlite(&'a Connection),
}

/// A parameter of a statement.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Integer(Option<i64>),
    Text(Option<String>),
    Bytes(Vec<u8>),
}

/// A row of a result.
pub(crate) enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
}

/// The type of a column.
pub(crate) trait Column: FromSql {}

impl Column for i64 {}
impl Column for Option<i64> {}
impl Column for String {}
impl Column for Option<String> {}
impl Column for Vec<u8> {}
impl Column for bool {}

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
        }
    }

    /// Runs statements without parameters.
    pub(crate) fn statements(self, sql: &str) -> Outcome<()> {
        match self {
            Self::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
        }
    }

    /// The cluster that the history is of.
    pub(crate) fn cluster(self) -> Outcome<Cluster> {
        match self {
            Self::Sqlite(connection) => schema::cluster_of(connection),
        }
    }

    /// A number that is another one once somebody else has written something.
    pub(crate) fn revision(self) -> Outcome<i64> {
        match self {
            Self::Sqlite(connection) => {
                Ok(connection.pragma_query_value(None, "data_version", |row| row.get(0))?)
            }
        }
    }

    /// The question whether views stand before the tables.
    pub(crate) fn has_views(self) -> &'static str {
        match self {
            Self::Sqlite(_) => "SELECT EXISTS (SELECT 1 FROM temp.sqlite_schema WHERE name = 'objects')",
        }
    }

    /// The bytes that the history needs.
    pub(crate) fn used_bytes(self) -> Outcome<u64> {
        match self {
            Self::Sqlite(connection) => {
                let of = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
                Ok((of("page_count")? - of("freelist_count")?) * of("page_size")?)
            }
        }
    }

    /// What the database itself finds wrong with its files.
    pub(crate) fn unsound(self) -> Outcome<Vec<String>> {
        let lines = self.all("PRAGMA integrity_check(100)", &[], |row| row.get::<String>(0))?;
        Ok(lines.into_iter().filter(|line| line != "ok").map(|line| format!("SQLite: {line}")).collect())
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
        }
    }

    /// Asks several questions at one moment.
    pub(crate) fn reading<T>(self, ask: impl FnOnce(Self) -> Outcome<T>) -> Outcome<T> {
        match self {
            Self::Sqlite(connection) => {
                let _transaction = connection.unchecked_transaction()?;
                ask(self)
            }
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
        }
    }
}

impl Row<'_> {
    /// A column.
    pub(crate) fn get<T: Column>(&self, at: usize) -> Outcome<T> {
        match self {
            Self::Sqlite(row) => Ok(row.get(at)?),
        }
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
