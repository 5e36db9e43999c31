//! A file of SQLite as a database to ask.

use std::ops::ControlFlow;

use rusqlite::{Connection, Transaction, TransactionBehavior, params_from_iter};

use super::schema;
use crate::report::Cluster;
use crate::sql::db::{Database, Db, Purpose, Row, Value};
use crate::sql::fault::Outcome;

impl Database for Connection {
    fn each(
        &self,
        sql: &str,
        values: &[Value],
        visit: &mut dyn FnMut(&Row<'_>) -> Outcome<ControlFlow<()>>,
    ) -> Outcome<()> {
        let mut statement = self.prepare_cached(sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            if visit(&Row::Sqlite(row))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn run(&self, sql: &str, values: &[Value]) -> Outcome<u64> {
        Ok(self.prepare_cached(sql)?.execute(params_from_iter(values))? as u64)
    }

    fn statements(&self, sql: &str) -> Outcome<()> {
        Ok(self.execute_batch(sql)?)
    }

    fn transaction(&self, purpose: Purpose, work: &mut dyn FnMut() -> Outcome<()>) -> Outcome<()> {
        if purpose == Purpose::Limit {
            // The file system may be read-only.
            self.pragma_update(None, "temp_store", "memory")?;
        }
        let behavior = match purpose {
            Purpose::Read | Purpose::Limit => TransactionBehavior::Deferred,
            // The write lock is taken now, where SQLite waits for it. A transaction that begins by reading fails when it comes to write and
            // another writer was there in the meantime.
            Purpose::Write => TransactionBehavior::Immediate,
        };
        let transaction = Transaction::new_unchecked(self, behavior)?;
        work()?;
        Ok(transaction.commit()?)
    }

    fn is_file(&self) -> bool {
        true
    }

    fn cluster(&self) -> Outcome<Cluster> {
        schema::cluster_of(self)
    }

    fn log(&self) -> Outcome<String> {
        Db(self).one("SELECT value FROM meta WHERE name = 'log'", &[])
    }

    fn revision(&self) -> Outcome<i64> {
        Ok(self.pragma_query_value(None, "data_version", |row| row.get(0))?)
    }

    fn has_views(&self) -> &'static str {
        "SELECT EXISTS (SELECT 1 FROM temp.sqlite_schema WHERE name = 'objects')"
    }

    fn used_bytes(&self) -> Outcome<u64> {
        let of = |name: &str| self.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
        Ok((of("page_count")? - of("freelist_count")?) * of("page_size")?)
    }

    fn unsound(&self) -> Outcome<Vec<String>> {
        let lines = Db(self).all("PRAGMA integrity_check(100)", &[], |row| row.get::<String>(0))?;
        Ok(lines.into_iter().filter(|line| line != "ok").map(|line| format!("SQLite: {line}")).collect())
    }

    /// Room is used again.
    fn reclaim(&self) -> Outcome<()> {
        Ok(())
    }

    /// Versions count what they share.
    fn unshares(&self) {}

    fn end_scrub(&self) -> Outcome<bool> {
        Ok(Db(self).one::<i64>("PRAGMA wal_checkpoint(truncate)", &[])? == 0)
    }

    fn shrink(&self) -> Outcome<()> {
        self.statements("PRAGMA shrink_memory")
    }
}
