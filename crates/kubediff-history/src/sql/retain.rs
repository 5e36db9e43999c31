//! Removes old versions and records.

#[cfg(feature = "postgres")]
mod ahead;
#[cfg(feature = "postgres")]
mod days;

#[cfg(feature = "postgres")]
pub(crate) use ahead::prepare;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::db::{Db, Value, values};
use super::detail;
use super::fault::{Fault, Outcome};
use super::names::{self, Table};
use super::packing::{Packing, ROW};
use super::times::{Span, meta};
use super::{read, stories, values};
use crate::record::Number;
use crate::report::{Ahead, Lost, Plan, Retained, Retention};
use jiff::{SignedDuration, Timestamp};

/// Versions per step, in a file and in a database: others may write in between. In a database, each of them may be the last one of an object,
/// which is packed again while the writer waits.
const STEPS: [i64; 2] = [64, 16];
/// A run removes no more than the records of so long a time, in microseconds.
const DAY: i64 = 24 * 60 * 60 * 1_000_000;

fn step(db: Db<'_>) -> i64 {
    let [file, database] = STEPS;
    if db.is_file() { file } else { database }
}

/// The records that a run removes. Its limits hold whatever the clock says: no record is older than the last one makes it, and no more than a
/// day's records go.
pub(crate) fn plan(db: Db<'_>, retention: &Retention, now: Timestamp) -> Outcome<Plan> {
    let (after, wanted) = (meta(db, "complete_after")?, cut(db, retention, now)?);
    let Retention { bytes, for_sinks, .. } = *retention;
    // Some more than necessary goes, so that there is room for a while.
    let used = db.used_bytes()?;
    let bytes = bytes.filter(|bytes| used > *bytes).map(|bytes| bytes - bytes / 16);
    // The search for the end of a day reads what the day has.
    let most = if wanted > after || bytes.is_some() { day_after(db, after)? } else { after };
    let events_up_to = events_cut(db, retention, now)?;
    let (up_to, leaves_some, ahead) = (wanted.min(most), wanted > most, Ahead::default());
    Ok(Plan { up_to, most, bytes, for_sinks, leaves_some, events_up_to, ahead })
}

/// The last Event that age and bytes do not keep, and no more than a day's: a clock that was wrong removes little.
fn events_cut(db: Db<'_>, retention: &Retention, now: Timestamp) -> Outcome<i64> {
    let oldest = "SELECT observed_at FROM versions WHERE verb > 4 ORDER BY number LIMIT 1";
    let Some(oldest) = db.first(oldest, &[], |row| row.get::<i64>(0))? else { return Ok(0) };
    let before = |at: Timestamp| Ok::<_, Fault>(Span::of(db, Some(at), None)?.from - 1);
    let mut cut = 0;
    if let (Some(age), Some((_, recorded))) = (retention.event_age, read::last(db)?) {
        let age = SignedDuration::try_from(age).map_err(|_| Fault::Invalid("the age is too great"))?;
        cut = before(now.min(recorded).checked_sub(age).unwrap_or(Timestamp::MIN))?;
    }
    cut = cut.max(events_beyond(db, retention)?);
    let day = before(values::time(oldest.saturating_add(DAY))?)?;
    Ok(if day > 0 { cut.min(day) } else { cut })
}

/// The last of the Events that bytes do not keep.
fn events_beyond(db: Db<'_>, retention: &Retention) -> Outcome<i64> {
    let used = meta(db, "event_bytes")?.unsigned_abs();
    let Some(most) = retention.event_bytes.filter(|most| used > *most) else { return Ok(0) };
    let mut left = used - (most - most / 16);
    let sizes =
        "SELECT number, length(detail) + length(frame) + ?1 FROM versions WHERE verb > 4 ORDER BY number";
    let mut cut = 0;
    db.each(sizes, values![ROW], |row| {
        cut = row.get(0)?;
        left = left.saturating_sub(row.get::<i64>(1)?.unsigned_abs());
        Ok(if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(cut)
}

/// Removes some Events as a whole: those of which nothing came after the cut. Returns whether there were any.
fn retain_events(packing: &mut Packing, db: Db<'_>, cut: i64, done: &mut Retained) -> Outcome<bool> {
    db.writing(|db| {
        let sql = "SELECT DISTINCT v.object FROM versions v WHERE v.verb > 4 AND v.number <= ?1
                   AND (SELECT max(number) FROM versions WHERE object = v.object) <= ?1 LIMIT ?2";
        let objects = ids(db, sql, values![cut, step(db)])?;
        let mut newest = 0;
        #[cfg(feature = "postgres")]
        if !db.is_file() {
            newest = days::remove_events(db, &objects, done)?;
        }
        for object in objects.iter().filter(|_| db.is_file()) {
            let versions = ids(db, "SELECT number FROM versions WHERE object = ?1", values![*object])?;
            for number in &versions {
                remove_version(packing, db, *number)?;
                newest = newest.max(*number);
            }
            done.versions += versions.len() as u64;
            db.run("DELETE FROM objects WHERE id = ?1", values![*object])?;
        }
        let sql = "UPDATE meta SET value = ?1 WHERE name = 'events_after' AND value < ?1";
        db.run(sql, values![newest])?;
        Ok(!objects.is_empty())
    })
}

/// The last record that age and count do not keep.
fn cut(db: Db<'_>, retention: &Retention, now: Timestamp) -> Outcome<i64> {
    let mut cut = 0;
    let last = read::last(db)?;
    if let (Some(age), Some((last, recorded))) = (retention.age, last) {
        let age = SignedDuration::try_from(age).map_err(|_| Fault::Invalid("the age is too great"))?;
        let oldest = now.min(recorded).checked_sub(age).unwrap_or(Timestamp::MIN).as_microsecond();
        // All up to the first that is young enough.
        let young = "SELECT min(n) FROM (SELECT min(number) AS n FROM versions WHERE observed_at >= ?1 AND number > ?2
                     UNION ALL SELECT min(number) FROM gaps WHERE to_at >= ?1 AND number > ?2) m";
        let young: Option<i64> = db.one(young, values![oldest, meta(db, "complete_after")?])?;
        cut = cut.max(young.map_or(values::id(last), |young| young - 1));
    }
    if let Some(count) = retention.count {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let sql = "SELECT number FROM (SELECT number FROM versions WHERE verb BETWEEN 1 AND 4 UNION ALL SELECT number FROM gaps) r
                   ORDER BY number DESC LIMIT 1 OFFSET ?1";
        cut = cut.max(db.first(sql, values![count], |row| row.get(0))?.unwrap_or_default());
    }
    Ok(cut)
}

/// The last of the records after this one that follow each other within a day: up to the first that is a day away from the
/// oldest, before it or after it.
fn day_after(db: Db<'_>, after: i64) -> Outcome<i64> {
    let oldest = "SELECT observed_at FROM versions WHERE number > ?1 ORDER BY number LIMIT 1";
    let Some(oldest) = db.first(oldest, values![after], |row| row.get::<i64>(0))? else {
        return Ok(i64::MAX);
    };
    let first = "SELECT min(n) FROM (
                     SELECT min(number) AS n FROM versions WHERE observed_at >= ?2 + ?3 AND number > ?1
                     UNION ALL SELECT min(number) FROM versions WHERE observed_at <= ?2 - ?3 AND number > ?1) m";
    let first: Option<i64> = db.one(first, values![after, oldest, DAY])?;
    Ok(first.map_or(i64::MAX, |first| first - 1))
}

/// Takes the next step of a plan: one transaction, which leaves a history that is sound by itself.
pub(crate) fn retain(packing: &mut Packing, db: Db<'_>, plan: &Plan) -> Outcome<Retained> {
    let before = meta(db, "complete_after")?;
    let mut done = Retained { complete_after: Number(before.unsigned_abs()), ..Retained::default() };
    if plan.events_up_to > 0 && retain_events(packing, db, plan.events_up_to, &mut done)? {
        done.more = true;
        return Ok(done);
    }
    let Some(goal) = goal(db, plan, before)? else { return Ok(done) };
    let cut = db.writing(|db| {
        let Ahead { after, up_to, bodies } = &plan.ahead;
        let is_ahead = *after == before && (before + 1..=goal).contains(up_to);
        let next = "SELECT number FROM versions WHERE number > ?1 AND number <= ?2 ORDER BY number LIMIT 1 OFFSET ?3";
        let next = match is_ahead {
            true => Some(*up_to),
            false => db.first(next, values![before, goal, step(db) - 1], |row| row.get(0))?,
        };
        let cut = next.unwrap_or(goal);
        // The letter says nothing without its record.
        db.run("DELETE FROM dead_letters WHERE number <= ?1", values![cut])?;
        done.lost = lose(db, cut)?;
        db.run("DELETE FROM scrubs WHERE number <= ?1", values![cut])?;
        done.gaps = db.run("DELETE FROM gaps WHERE number <= ?1", values![cut])?;
        let sql = "SELECT object FROM versions WHERE number > ?1 AND number <= ?2
                   UNION SELECT id FROM objects WHERE ended > ?1 AND ended <= ?2";
        let objects = ids(db, sql, values![before, cut])?;
        remove(packing, db, &objects, (before, cut), bodies, &mut done)?;
        stories::forget(db, cut)?;
        db.run("UPDATE meta SET value = ?1 WHERE name = 'complete_after'", values![cut])?;
        Ok(cut)
    })?;
    (done.complete_after, done.more) = (Number(cut.unsigned_abs()), true);
    Ok(done)
}

/// The record up to which a plan removes at present; `None` if nothing is left to be removed.
fn goal(db: Db<'_>, plan: &Plan, before: i64) -> Outcome<Option<i64>> {
    let last = meta(db, "next")? - 1;
    let is_over = || plan.bytes.map_or(Ok(false), |bytes| Ok::<_, Fault>(db.used_bytes()? > bytes));
    let goal = match before < plan.up_to {
        true => plan.up_to,
        false if is_over()? => plan.most.min(last),
        false => return Ok(None),
    };
    let goal = goal.min(for_sinks(last, db, plan, goal)?);
    Ok(Some(goal).filter(|goal| *goal > before))
}

fn ids(db: Db<'_>, sql: &str, of: &[Value]) -> Outcome<Vec<i64>> {
    db.all(sql, of, |row| row.get(0))
}

/// How far the sinks let it be removed.
fn for_sinks(last: i64, db: Db<'_>, plan: &Plan, cut: i64) -> Outcome<i64> {
    let slowest: Option<i64> = db.one("SELECT min(position) FROM sinks", &[])?;
    let Some(slowest) = slowest.filter(|slowest| *slowest < cut) else { return Ok(cut) };
    let most = i64::try_from(plan.for_sinks).unwrap_or(i64::MAX);
    Ok(slowest.max(last.saturating_sub(most)))
}

/// Moves the sinks that have not come to `cut` there, and says what they lose.
fn lose(db: Db<'_>, cut: i64) -> Outcome<Vec<Lost>> {
    let behind = "SELECT name, position FROM sinks WHERE position < ?1 ORDER BY name";
    let behind = db.all(behind, values![cut], |row| Ok((row.get::<String>(0)?, row.get::<i64>(1)?)))?;
    let mut lost = Vec::new();
    for (sink, after) in behind {
        let count = "SELECT (SELECT count(*) FROM versions WHERE number > ?1 AND number <= ?2 AND verb BETWEEN 1 AND 4)
                     + (SELECT count(*) FROM gaps WHERE number > ?1 AND number <= ?2)";
        let records: i64 = db.one(count, values![after, cut])?;
        let move_on = "UPDATE sinks SET position = ?2, lost = lost + ?3 WHERE name = ?1";
        db.run(move_on, values![&sink, cut, records])?;
        let (after, up_to) = (Number(after.unsigned_abs()), Number(cut.unsigned_abs()));
        if records > 0 {
            lost.push(Lost { sink, after, up_to, records: records.unsigned_abs() });
        }
    }
    Ok(lost)
}

#[cfg_attr(not(feature = "postgres"), expect(unused_variables, reason = "a file reads nothing ahead"))]
fn remove(
    packing: &mut Packing,
    db: Db<'_>,
    objects: &[i64],
    span: (i64, i64),
    bodies: &HashMap<i64, Arc<[u8]>>,
    done: &mut Retained,
) -> Outcome<()> {
    #[cfg(feature = "postgres")]
    if !db.is_file() {
        return days::remove(packing, db, objects, span, bodies, done);
    }
    let (_, cut) = span;
    for object in objects {
        let ended = "SELECT ended FROM objects WHERE id = ?1";
        let ended: Option<i64> = db.one(ended, values![*object])?;
        let old = "SELECT number FROM versions WHERE object = ?1 AND number <= ?2 ORDER BY number";
        let mut old = ids(db, old, values![*object, cut])?;
        let is_gone = ended.is_some_and(|ended| ended <= cut);
        // The last version of that time is the state in which everything after it begins.
        let first_kept = if is_gone { None } else { old.pop().filter(|_| !old.is_empty()) };
        if let Some(first) = first_kept {
            db.run("UPDATE objects SET first = ?2 WHERE id = ?1", values![*object, first])?;
        }
        let rebase = first_kept.map(|first| Rebase::prepare(packing, db, first)).transpose()?.flatten();
        // Removal comes first: it makes the room that the full version needs.
        old.iter().try_for_each(|number| remove_version(packing, db, *number))?;
        if let Some(rebase) = rebase {
            rebase.write(packing, db)?;
            done.rebased += 1;
        }
        done.versions += old.len() as u64;
        if is_gone {
            db.run("DELETE FROM objects WHERE id = ?1", values![*object])?;
        }
    }
    Ok(())
}

/// A version that becomes a full one.
struct Rebase {
    number: i64,
    kind: i64,
    body: Arc<[u8]>,
}

impl Rebase {
    /// `None` when it is one already.
    fn prepare(packing: &mut Packing, db: Db<'_>, number: i64) -> Outcome<Option<Self>> {
        let sql = "SELECT base, kind FROM versions WHERE number = ?1";
        let row = db.first(sql, values![number], |row| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?)))?;
        let Some((_, kind)) = row.filter(|(base, _)| *base != 0) else { return Ok(None) };
        Ok(Some(Self { number, kind, body: packing.codec.body(db, number)? }))
    }

    fn write(self, packing: &mut Packing, db: Db<'_>) -> Outcome<()> {
        let (shared, packed) = packing.full(db, self.kind, &self.body)?;
        let sql = "UPDATE versions SET base = 0, content = ?2, split = ?3, dictionary = ?4, frame = ?5 WHERE number = ?1";
        let (content, split) = shared.unzip();
        let split = split.map(|split| i64::try_from(split).unwrap_or(i64::MAX));
        db.run(sql, values![self.number, content, split, packed.dictionary, packed.frame]).map(drop)
    }
}

fn remove_version(packing: &mut Packing, db: Db<'_>, number: i64) -> Outcome<()> {
    let details = read::details(&mut packing.codec, db, number)?;
    let details = detail::read_words(&details, number)?;
    for manager in details.managers.iter() {
        if let Some(id) = names::find(db, Table::Managers, &manager.manager)? {
            let sql = "DELETE FROM version_managers WHERE manager = ?1 AND number = ?2";
            db.run(sql, values![id, number])?;
        }
    }
    for path in details.paths.iter() {
        if let Some(id) = names::find(db, Table::Paths, path)? {
            let sql = "DELETE FROM version_paths WHERE path = ?1 AND number = ?2";
            db.run(sql, values![id, number])?;
        }
    }
    db.run("DELETE FROM members WHERE number = ?1", values![number])?;
    let sql = "DELETE FROM versions WHERE number = ?1
               RETURNING content, CASE WHEN verb > 4 THEN length(detail) + length(frame) + ?2 ELSE 0 END";
    let row = db.first(sql, values![number, ROW], |row| Ok((row.get(0)?, row.get::<i64>(1)?)))?;
    let (content, bytes) = row.ok_or_else(|| Fault::damaged(format!("version {number} is missing")))?;
    forget_bytes(db, "event_bytes", bytes)?;
    release(db, content)
}

fn forget_bytes(db: Db<'_>, name: &str, bytes: i64) -> Outcome<()> {
    if bytes > 0 {
        let sql = "UPDATE meta SET value = CASE WHEN value > ?1 THEN value - ?1 ELSE 0 END WHERE name = ?2";
        db.run(sql, values![bytes, name])?;
    }
    Ok(())
}

/// A version does not need this content any more.
pub(crate) fn release(db: Db<'_>, content: Option<i64>) -> Outcome<()> {
    if let Some(content) = content.filter(|_| db.is_file()) {
        let sql = "UPDATE contents SET uses = uses - 1 WHERE id = ?1";
        db.run(sql, values![content])?;
        let sql = "DELETE FROM contents WHERE id = ?1 AND uses <= 0";
        db.run(sql, values![content])?;
    }
    Ok(())
}
