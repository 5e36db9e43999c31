//! A history in a line: who writes it, what its writer knows, and how much there is.

use jiff::Timestamp;

use super::db::{Db, values};
use super::fault::Outcome;
use super::read::{last, notes, positions};
use super::sight::is_limited;
use super::values::time;
use crate::report::{Leader, Overview, Standing};

pub(crate) fn standing(db: Db<'_>) -> Outcome<Standing> {
    Ok(Standing {
        notes: notes(db)?,
        positions: positions(db)?,
        last: last(db)?,
        has_prints: db.first("SELECT 1 FROM prints LIMIT 1", &[], |_| Ok(()))?.is_some(),
        is_limited: is_limited(db)?,
    })
}

/// Changes are counted from this time on.
pub(crate) fn overview(db: Db<'_>, since: Timestamp) -> Outcome<Overview> {
    let changes = "SELECT count(*) FROM versions WHERE observed_at >= ?1 AND verb BETWEEN 1 AND 4";
    let existing = "SELECT count(*) FROM objects WHERE ended IS NULL";
    Ok(Overview {
        cluster: db.cluster()?,
        leader: leader(db)?,
        standing: standing(db)?,
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
