//! The database that questions are asked of: one SQL, which each database understands after a few replacements.
//!
//! Numbers in columns are 64-bit integers, times are microseconds since 1970. Conditions on `main.versions` are about all versions, those
//! on `versions` about those that a limited reader may see.

use std::ops::{ControlFlow, Deref};

use rusqlite::types::{ToSqlOutput, ValueRef};

use super::fault::{Fault, Outcome};
use crate::report::Cluster;

/// A database, as questions and changes need it.
pub(crate) trait Database {
    /// Visits the rows of a result until `visit` breaks.
    fn each(
        &self,
        sql: &str,
        values: &[Value],
        visit: &mut dyn FnMut(&Row<'_>) -> Outcome<ControlFlow<()>>,
    ) -> Outcome<()>;

    /// Changes rows. Returns how many.
    fn run(&self, sql: &str, values: &[Value]) -> Outcome<u64>;

    /// Runs statements without parameters.
    fn statements(&self, sql: &str) -> Outcome<()>;

    /// Works in a transaction, all of it or nothing.
    fn transaction(&self, purpose: Purpose, work: &mut dyn FnMut() -> Outcome<()>) -> Outcome<()>;

    /// Whether it is a file. A database has no tables of its own for what has a name or path: its versions have tags.
    fn is_file(&self) -> bool;

    /// The cluster that the history is of.
    fn cluster(&self) -> Outcome<Cluster>;

    /// The id of the history, as 32 digits.
    fn log(&self) -> Outcome<String>;

    /// A number that is another one once somebody else has written something.
    fn revision(&self) -> Outcome<i64>;

    /// The question whether views stand before the tables.
    fn has_views(&self) -> &'static str;

    /// The bytes that the history needs.
    fn used_bytes(&self) -> Outcome<u64>;

    /// What the database itself finds wrong with its files.
    fn unsound(&self) -> Outcome<Vec<String>>;

    /// Gives back the room of what retention has removed, as far as that is free.
    fn reclaim(&self) -> Outcome<()>;

    /// Versions are masked: what they shared with others may belong to none from now on.
    fn unshares(&self);

    /// Ends a scrub. Returns whether nothing of what was masked is left beside the tables.
    fn end_scrub(&self) -> Outcome<bool>;

    /// Gives up the memory of pages.
    fn shrink(&self) -> Outcome<()>;
}

/// The purpose of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Several questions at one moment.
    Read,
    /// Changes.
    Write,
    /// Temporary views and tables.
    Limit,
}

/// A database to ask.
#[derive(Clone, Copy)]
pub(crate) struct Db<'a>(pub(crate) &'a dyn Database);

/// A statement with its parameters.
#[cfg(feature = "postgres")]
pub(crate) struct Statement {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value>,
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

impl<'a> Deref for Db<'a> {
    type Target = dyn Database + 'a;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl Db<'_> {
    /// Visits the rows of a result until `visit` breaks.
    pub(crate) fn each(
        self,
        sql: &str,
        values: &[Value],
        mut visit: impl FnMut(&Row<'_>) -> Outcome<ControlFlow<()>>,
    ) -> Outcome<()> {
        self.0.each(sql, values, &mut visit)
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

    /// Works in a transaction, all of it or nothing.
    pub(crate) fn within<T>(self, purpose: Purpose, work: impl FnOnce(Self) -> Outcome<T>) -> Outcome<T> {
        let (mut work, mut done) = (Some(work), None);
        self.0.transaction(purpose, &mut || {
            if let Some(work) = work.take() {
                done = Some(work(self)?);
            }
            Ok(())
        })?;
        done.ok_or_else(|| Fault::damaged("a transaction did not run"))
    }

    /// Asks several questions at one moment.
    pub(crate) fn reading<T>(self, ask: impl FnOnce(Self) -> Outcome<T>) -> Outcome<T> {
        self.within(Purpose::Read, ask)
    }

    /// Changes rows, all of it or nothing.
    pub(crate) fn writing<T>(self, write: impl FnOnce(Self) -> Outcome<T>) -> Outcome<T> {
        self.within(Purpose::Write, write)
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

/// A number of any width.
#[cfg(feature = "postgres")]
pub(crate) struct Integer(pub(crate) i64);

#[cfg(feature = "postgres")]
impl<'a> tokio_postgres::types::FromSql<'a> for Integer {
    fn from_sql(
        ty: &tokio_postgres::types::Type,
        raw: &'a [u8],
    ) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        use tokio_postgres::types::Type;

        Ok(Self(match *ty {
            Type::INT2 => i16::from_sql(ty, raw)?.into(),
            Type::INT4 => i32::from_sql(ty, raw)?.into(),
            _ => i64::from_sql(ty, raw)?,
        }))
    }

    fn accepts(ty: &tokio_postgres::types::Type) -> bool {
        use tokio_postgres::types::Type;

        matches!(*ty, Type::INT2 | Type::INT4 | Type::INT8)
    }
}
