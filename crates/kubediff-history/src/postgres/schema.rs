//! Connections to a database, its tables, and its logs.

use super::Address;
use super::link::Link;
use super::session::{Log, Role, Session, TTL};
use crate::error::Error;
use crate::report::Cluster;
use crate::sql::db::{Integer, Value};
use crate::sql::fault::{Fault, Outcome};

/// The format of the tables that this program knows.
const FORMAT: i64 = 2;
const TABLES: &str = include_str!("schema.sql");
/// From one format to the next one.
const STEPS: [&str; 1] = [include_str!("second.sql")];

/// Makes the tables of histories in a database, and the roles `kubediff_writer` and `kubediff_reader`, whose members write and read; or leaves
/// them as they are. Returns whether they were made.
///
/// # Errors
///
/// When the login may not make schemas or roles, or the database cannot be reached.
pub fn migrate(address: &Address) -> Result<bool, Error> {
    let (config, tls) = address.resolve()?;
    let run = || -> Outcome<bool> {
        let link = Link::connect(config, tls)?;
        let found = format(&link)?.map(|(found, _)| found);
        let known = usize::try_from(found.unwrap_or(1)).unwrap_or_default().saturating_sub(1);
        let tables = if found.is_none() { TABLES } else { "" };
        let steps = STEPS.get(known..).unwrap_or_default().join(";");
        if found.is_none() || !steps.is_empty() {
            link.batch(format!("BEGIN; {tables}; {steps}; COMMIT"))?;
            return Ok(true);
        }
        Ok(false)
    };
    run().map_err(|fault| fault.at(address.place()))
}

/// The format of the tables, and that of the oldest program that can use them; `None` without tables.
fn format(link: &Link) -> Outcome<Option<(i64, i64)>> {
    let there = link.run_one("SELECT to_regclass('kubediff.format') IS NOT NULL".to_owned(), &[])?;
    let is_there = there.rows.first().map(|row| row.try_get::<_, bool>(0)).transpose()?;
    if is_there != Some(true) {
        return Ok(None);
    }
    let found = link.run_one("SELECT version, oldest_program FROM kubediff.format".to_owned(), &[])?;
    let row = found.rows.first().ok_or_else(|| Fault::damaged("it says no format"))?;
    let (Integer(version), Integer(oldest)) = (row.try_get(0)?, row.try_get(1)?);
    Ok(Some((version, oldest)))
}

/// Connects in a role.
pub(crate) fn connect(address: &Address, role: Role) -> Result<Link, Error> {
    let (config, tls) = address.resolve()?;
    let failed = |fault: Fault| fault.at(address.place());
    let link = Link::connect(config, tls).map_err(failed)?;
    let (found, oldest) =
        format(&link).map_err(failed)?.ok_or_else(|| Error::NoTables { place: address.place() })?;
    let number = |it: i64| u32::try_from(it).unwrap_or(u32::MAX);
    if oldest > FORMAT {
        return Err(Error::Newer { place: address.place(), found: number(found), known: number(FORMAT) });
    }
    if found < FORMAT {
        return Err(Error::Older { place: address.place(), found: number(found) });
    }
    // A writer that stands still in a transaction keeps others from the term. A reader may take its time between two questions.
    let (role, idle) = match role {
        Role::Reader => ("kubediff_reader", 30),
        Role::Writer => ("kubediff_writer", TTL.as_secs()),
    };
    // Each question goes from a few rows to others by an index. The database does not know that before it has counted the rows of a day.
    let settings = format!(
        "SET ROLE {role}; SET search_path = kubediff; SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '{idle}s'; \
         SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET join_collapse_limit = 1; \
         SET jit = off; SET plan_cache_mode = force_generic_plan"
    );
    link.batch(settings).map_err(failed)?;
    Ok(link)
}

/// The logs that a login may see.
fn list(link: &Link) -> Outcome<Vec<Log>> {
    let sql =
        "SELECT log, id::text, cluster_uid, cluster_name FROM log_list ORDER BY cluster_name, cluster_uid";
    let found = link.run_one(sql.to_owned(), &[])?;
    let mut logs = Vec::new();
    for row in found.rows {
        let Integer(log) = row.try_get(0)?;
        let cluster = Cluster { uid: row.try_get(2)?, name: row.try_get(3)? };
        logs.push(Log { log, id: row.try_get(1)?, cluster });
    }
    Ok(logs)
}

/// The log of a cluster, which is made if there is none.
pub(crate) fn open_log(link: Link, cluster: &Cluster) -> Outcome<Session> {
    let values = [Value::from(&cluster.uid), Value::from(cluster.name.as_deref())];
    link.run_one("SELECT open_log($1, $2)".to_owned(), &values)?;
    let log = list(&link)?.into_iter().find(|log| log.cluster.uid == cluster.uid);
    Session::of(link, log.ok_or_else(|| Fault::damaged("the log of this cluster is missing"))?)
}

/// Connects in the first of these roles that the login may have. Says in which, and which logs it may see.
pub(crate) fn logs(address: &Address, roles: &[Role]) -> Result<(Link, Vec<Log>, Role), Error> {
    let mut roles = roles.iter().map(|role| (connect(address, *role), *role));
    let is_refused = |tried: &(Result<_, Error>, Role)| matches!(tried.0, Err(Error::Denied { .. }));
    let mut tried = roles.next();
    while tried.as_ref().is_some_and(is_refused)
        && let Some(next) = roles.next()
    {
        tried = Some(next);
    }
    let Some((link, role)) = tried else { return Err(Error::NotFound("role".to_owned())) };
    let link = link?;
    let logs = list(&link).map_err(|fault| fault.at(address.place()))?;
    Ok((link, logs, role))
}
