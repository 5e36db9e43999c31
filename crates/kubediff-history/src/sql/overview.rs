//! A history in a line: who writes it, what its writer knows, and how much there is.

use jiff::Timestamp;

use super::db::{Db, values};
use super::fault::Outcome;
use super::read::{Lens, last};
use super::values::time;
use crate::report::{Leader, Overview, Standing};

/// Of a hundred clusters in a row: one look for all.
pub(crate) fn standing(db: Db<'_>, lens: &Lens) -> Outcome<Standing> {
    let sql = "SELECT 1, name, value FROM notes UNION ALL SELECT 2, resource, rv FROM positions
               UNION ALL SELECT 3, '', '' WHERE EXISTS (SELECT 1 FROM prints)";
    let mut standing = Standing { last: last(db)?, is_limited: lens.is_limited, ..Standing::default() };
    for (of, name, value) in db.all(sql, &[], |row| Ok((row.get::<i64>(0)?, row.get(1)?, row.get(2)?)))? {
        match of {
            1 => drop(standing.notes.insert(name, value)),
            2 => drop(standing.positions.insert(name, value)),
            _ => standing.has_prints = true,
        }
    }
    Ok(standing)
}

/// Changes are counted from this time on.
pub(crate) fn overview(db: Db<'_>, lens: &Lens, since: Timestamp) -> Outcome<Overview> {
    let changes = "SELECT count(*) FROM versions WHERE observed_at >= ?1 AND verb BETWEEN 1 AND 4";
    let existing = "SELECT count(*) FROM objects WHERE ended IS NULL";
    Ok(Overview {
        cluster: db.cluster()?,
        leader: leader(db)?,
        standing: standing(db, lens)?,
        changes: db.one::<i64>(changes, values![since.as_microsecond()])?.unsigned_abs(),
        existing: db.one::<i64>(existing, &[])?.unsigned_abs(),
        bytes: db.used_bytes()?,
    })
}

/// The process that has the term now, by the database's clock.
fn leader(db: Db<'_>) -> Outcome<Option<Leader>> {
    if db.is_file() {
        return Ok(None);
    }
    let sql = "SELECT holder, (extract(epoch FROM since) * 1000000)::bigint FROM terms
               WHERE token IS NOT NULL AND expires_at >= clock_timestamp()";
    db.first(sql, &[], |row| Ok(Leader { name: row.get(0)?, since: time(row.get(1)?)? }))
}
