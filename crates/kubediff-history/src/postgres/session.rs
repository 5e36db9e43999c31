//! A session with a database: one log, one role, one transaction at a time.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::link::{Done, Link};
use crate::report::Cluster;
use crate::sql::db::{Database, Db, Purpose, Row, Statement, Value};
use crate::sql::fault::{Fault, Outcome};
use crate::sql::times::meta;

/// A term ends so long after its last renewal.
pub(crate) const TTL: Duration = Duration::from_secs(10);

/// The role in which a session acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Reader,
    Writer,
}

/// A session with one log.
pub(crate) struct Session {
    pub(crate) link: Link,
    /// The number of the log, and its id.
    log: i64,
    pub(crate) id: String,
    pub(crate) cluster: Cluster,
    /// The token of the term, for a session that writes.
    pub(crate) token: Option<String>,
    /// When questions end.
    deadline: Cell<Option<Instant>>,
    /// Where other sessions have the same connection: a transaction holds it.
    turn: Option<Arc<Mutex<()>>>,
    /// Whether there may be contents that no version has any more. A process before this one may have left some.
    unshared: Cell<bool>,
}

/// A log of a database.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) log: i64,
    pub(crate) id: String,
    pub(crate) cluster: Cluster,
}

impl Log {
    /// Whether it is of the cluster with this name or uid.
    pub(crate) fn is_of(&self, wanted: &str) -> bool {
        self.cluster.name.as_deref() == Some(wanted) || self.cluster.uid == wanted
    }
}

impl Session {
    /// Acts in a role on one log from now on.
    pub(crate) fn of(link: Link, log: Log) -> Outcome<Self> {
        link.batch(format!("SET kubediff.log = {}", log.log))?;
        let Log { log, id, cluster } = log;
        let (deadline, unshared) = (Cell::new(None), Cell::new(true));
        Ok(Self { link, log, id, cluster, token: None, deadline, turn: None, unshared })
    }

    /// Reads one log over a connection that other sessions have, too.
    pub(crate) fn among(link: &Link, turn: &Arc<Mutex<()>>, Log { log, id, cluster }: Log) -> Self {
        let (link, turn) = (link.clone(), Some(turn.clone()));
        let (deadline, unshared) = (Cell::new(None), Cell::new(true));
        Self { link, log, id, cluster, token: None, deadline, turn, unshared }
    }

    /// The same over another connection.
    pub(crate) fn again(&self, link: Link) -> Outcome<Self> {
        let (id, cluster) = (self.id.clone(), self.cluster.clone());
        let again = Self::of(link, Log { log: self.log, id, cluster })?;
        again.until(self.deadline.get());
        Ok(again)
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

    /// How a transaction begins.
    fn begin(&self, purpose: Purpose) -> Outcome<String> {
        Ok(match purpose {
            Purpose::Read => {
                let mut begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY".to_owned();
                if self.turn.is_some() {
                    begin.push_str(&format!("; SET LOCAL kubediff.log = {}", self.log));
                }
                if let Some(deadline) = self.deadline.get() {
                    let left = deadline.saturating_duration_since(Instant::now());
                    let left = left.max(Duration::from_millis(1)).as_millis();
                    begin.push_str(&format!("; SET LOCAL statement_timeout = {left}"));
                }
                begin
            }
            Purpose::Limit if self.turn.is_some() => {
                return Err(Fault::Invalid("views are of a connection, which other readers have, too"));
            }
            Purpose::Limit => "BEGIN".to_owned(),
            Purpose::Write => {
                let token = self.token.as_deref().ok_or(Fault::Invalid("a reader writes nothing"))?;
                format!("BEGIN; SELECT hold_term('{token}')")
            }
        })
    }

    /// Runs statements in one round trip.
    pub(crate) fn run(&self, statements: Vec<Statement>) -> Outcome<Vec<Done>> {
        self.link.run(statements)
    }
}

impl Database for Session {
    fn each(
        &self,
        sql: &str,
        values: &[Value],
        visit: &mut dyn FnMut(&Row<'_>) -> Outcome<ControlFlow<()>>,
    ) -> Outcome<()> {
        for row in self.ask(sql, values)?.rows {
            if visit(&Row::Postgres(&row))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn run(&self, sql: &str, values: &[Value]) -> Outcome<u64> {
        Ok(self.ask(sql, values)?.changed)
    }

    fn statements(&self, sql: &str) -> Outcome<()> {
        self.link.batch(translated(sql))
    }

    fn transaction(&self, purpose: Purpose, work: &mut dyn FnMut() -> Outcome<()>) -> Outcome<()> {
        let _turn = self.turn.as_ref().map(|turn| turn.lock().unwrap_or_else(PoisonError::into_inner));
        let begin = self.begin(purpose)?;
        // To read takes as many round trips as it has statements.
        let is_read = purpose == Purpose::Read;
        let begun = if is_read {
            self.link.first(begin);
            Ok(())
        } else {
            self.link.batch(begin)
        };
        match begun.and_then(|()| work()) {
            Ok(()) if is_read => {
                self.link.last("COMMIT");
                Ok(())
            }
            Ok(()) => self.link.batch("COMMIT"),
            Err(fault) => {
                // Without a connection there is no transaction.
                let _ = self.link.batch("ROLLBACK");
                Err(fault)
            }
        }
    }

    fn is_file(&self) -> bool {
        false
    }

    fn cluster(&self) -> Outcome<Cluster> {
        Ok(self.cluster.clone())
    }

    fn log(&self) -> Outcome<String> {
        Ok(self.id.replace('-', ""))
    }

    fn revision(&self) -> Outcome<i64> {
        Db(self).one("SELECT value FROM meta WHERE name = 'revision'", &[])
    }

    fn has_views(&self) -> &'static str {
        "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname = 'objects' AND relnamespace = pg_my_temp_schema())"
    }

    /// Those of the versions of this log: what others need is not its own.
    fn used_bytes(&self) -> Outcome<u64> {
        Ok(meta(Db(self), "bytes")?.unsigned_abs())
    }

    fn unsound(&self) -> Outcome<Vec<String>> {
        Ok(Vec::new())
    }

    fn reclaim(&self) -> Outcome<()> {
        Db(self).all("SELECT drop_days()", &[], |_| Ok(())).map(drop)
    }

    fn unshares(&self) {
        self.unshared.set(true);
    }

    fn end_scrub(&self) -> Outcome<bool> {
        // It reads the whole log.
        if self.unshared.get() {
            let sql = "DELETE FROM contents c WHERE NOT EXISTS (SELECT 1 FROM versions v WHERE v.day = c.day AND v.content = c.id)";
            Db(self).writing(|db| {
                db.run("SELECT set_config(name, 'on', true) FROM unnest(ARRAY['enable_hashjoin', 'enable_seqscan']) name", &[])?;
                db.run(sql, &[])
            })?;
            self.unshared.set(false);
        }
        Ok(true)
    }

    fn shrink(&self) -> Outcome<()> {
        Ok(())
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
