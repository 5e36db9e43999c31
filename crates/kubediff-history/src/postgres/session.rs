//! A session with a database: one log, one role, one transaction at a time.

use std::cell::Cell;
use std::time::{Duration, Instant};

use tokio_postgres::types::{FromSql, Type};

use super::link::{Done, Link, Statement};
use crate::report::Cluster;
use crate::sql::db::Value;
use crate::sql::fault::{Fault, Outcome};

/// The role in which a session acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Reader,
    Writer,
}

/// A session with one log.
pub(crate) struct Session {
    pub(crate) link: Link,
    /// The id of the log.
    pub(crate) id: String,
    pub(crate) cluster: Cluster,
    /// The token of the term, for a session that writes.
    pub(crate) token: Option<String>,
    /// When questions end.
    deadline: Cell<Option<Instant>>,
}

/// A log of a database.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) log: i64,
    pub(crate) id: String,
    pub(crate) cluster: Cluster,
}

impl Session {
    /// Acts in a role on one log from now on.
    pub(crate) fn of(link: Link, log: Log) -> Outcome<Self> {
        link.batch(format!("SET kubediff.log = {}", log.log))?;
        let Log { id, cluster, .. } = log;
        Ok(Self { link, id, cluster, token: None, deadline: Cell::new(None) })
    }

    pub(crate) fn until(&self, deadline: Option<Instant>) {
        self.deadline.set(deadline);
    }

    /// Runs a statement of the questions.
    pub(crate) fn ask(&self, sql: &str, values: &[Value]) -> Outcome<Done> {
        if self.deadline.get().is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Fault::Late);
        }
        self.link.run_one(translated(sql), values)
    }

    /// Runs statements without parameters.
    pub(crate) fn statements(&self, sql: &str) -> Outcome<()> {
        self.link.batch(translated(sql))
    }

    /// Asks several questions at one moment.
    pub(crate) fn reading<T>(&self, ask: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let mut begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY".to_owned();
        if let Some(deadline) = self.deadline.get() {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            begin.push_str(&format!("; SET LOCAL statement_timeout = {}", left.as_millis()));
        }
        self.transaction(&begin, ask)
    }

    /// Changes rows, as the process that has the term.
    pub(crate) fn writing<T>(&self, write: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let token = self.token.as_deref().ok_or(Fault::Invalid("a reader writes nothing"))?;
        self.transaction(&format!("BEGIN; SELECT hold_term('{token}')"), write)
    }

    /// Runs statements in a transaction, all of it or nothing.
    pub(crate) fn transaction<T>(&self, begin: &str, run: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let done = self.link.batch(begin).and_then(|()| run());
        match done {
            Ok(done) => self.link.batch("COMMIT").map(|()| done),
            Err(fault) => {
                // Without a connection there is no transaction.
                let _ = self.link.batch("ROLLBACK");
                Err(fault)
            }
        }
    }

    pub(crate) fn revision(&self) -> Outcome<i64> {
        let sql = "SELECT value FROM meta WHERE name = 'revision'";
        let done = self.link.run_one(sql.to_owned(), &[])?;
        let found = done.rows.first().map(|row| row.try_get(0)).transpose()?;
        Ok(found.map_or(0, |Integer(revision)| revision))
    }

    /// The bytes that all logs of the database need.
    pub(crate) fn used_bytes(&self) -> Outcome<u64> {
        let sql = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
                   WHERE relnamespace = 'kubediff'::regnamespace AND relkind = 'r'";
        let done = self.link.run_one(sql.to_owned(), &[])?;
        let found = done.rows.first().map(|row| row.try_get(0)).transpose()?;
        Ok(found.map_or(0, |Integer(bytes)| bytes.unsigned_abs()))
    }

    /// Runs statements in one round trip.
    pub(crate) fn run(&self, statements: Vec<Statement>) -> Outcome<Vec<Done>> {
        self.link.run(statements)
    }
}

/// A statement of the questions as PostgreSQL has it.
fn translated(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len());
    let mut next = 1;
    let mut rest = sql.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '?' => {
                text.push('$');
                if !rest.peek().is_some_and(char::is_ascii_digit) {
                    text.push_str(&next.to_string());
                    next += 1;
                }
            }
            c => text.push(c),
        }
    }
    for (sqlite, postgres) in [
        ("CROSS JOIN", "JOIN"),
        (" INDEXED BY lives", ""),
        (" WITHOUT ROWID", ""),
        ("main.", "kubediff."),
        ("INDEX temp.", "INDEX "),
        ("temp.", "pg_temp."),
        ("INTEGER", "BIGINT"),
    ] {
        if text.contains(sqlite) {
            text = text.replace(sqlite, postgres);
        }
    }
    text
}

/// A number of any width.
pub(crate) struct Integer(pub(crate) i64);

impl<'a> FromSql<'a> for Integer {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(match *ty {
            Type::INT2 => i16::from_sql(ty, raw)?.into(),
            Type::INT4 => i32::from_sql(ty, raw)?.into(),
            _ => i64::from_sql(ty, raw)?,
        }))
    }

    fn accepts(ty: &Type) -> bool {
        matches!(*ty, Type::INT2 | Type::INT4 | Type::INT8)
    }
}

#[cfg(test)]
mod tests {
    use super::translated;

    #[test]
    fn parameters_have_numbers() {
        assert_eq!(translated("a = ?2 AND b = ?1"), "a = $2 AND b = $1");
        assert_eq!(
            translated("a = ? AND b = ? CROSS JOIN main.versions"),
            "a = $1 AND b = $2 JOIN kubediff.versions"
        );
    }
}
