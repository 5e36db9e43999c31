//! Removes old versions and records.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Params, Transaction, TransactionBehavior, params};

use super::detail;
use super::fault::{Fault, Outcome};
use super::names::{self, Table};
use super::times::Span;
use super::write::{BatchWriter, ROW};
use super::{read, stories, values};
use crate::record::Number;
use crate::report::{Lost, Plan, Retained, Retention};
use jiff::{SignedDuration, Timestamp};

/// Versions per step: others may write in between.
const STEP: i64 = 64;
/// A run removes no more than the records of so long a time, in microseconds.
const DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// The records that a run removes. Its limits hold whatever the clock says: no record is older than the last one makes it, and no more than a
/// day's records go.
pub(super) fn plan(connection: &Connection, retention: &Retention, now: Timestamp) -> Outcome<Plan> {
    let (after, wanted) = (complete_after(connection)?, cut(connection, retention, now)?);
    let Retention { bytes, for_sinks, .. } = *retention;
    // Some more than necessary goes, so that there is room for a while.
    let used = used_bytes(connection)?;
    let bytes = bytes.filter(|bytes| used > *bytes).map(|bytes| bytes - bytes / 16);
    // The search for the end of a day reads what the day has.
    let most = if wanted > after || bytes.is_some() { day_after(connection, after)? } else { after };
    let events_up_to = events_cut(connection, retention, now)?;
    Ok(Plan { up_to: wanted.min(most), most, bytes, for_sinks, leaves_some: wanted > most, events_up_to })
}

/// The last Event that age and bytes do not keep, and no more than a day's: a clock that was wrong removes little.
fn events_cut(connection: &Connection, retention: &Retention, now: Timestamp) -> Outcome<i64> {
    let oldest = "SELECT observed_at FROM versions WHERE verb > 4 ORDER BY number LIMIT 1";
    let oldest = connection.query_row(oldest, [], |row| row.get::<_, i64>(0)).optional()?;
    let Some(oldest) = oldest else { return Ok(0) };
    let before = |at: Timestamp| Ok::<_, Fault>(Span::of(connection, Some(at), None)?.from - 1);
    let mut cut = 0;
    if let (Some(age), Some((_, recorded))) = (retention.event_age, read::last(connection)?) {
        let age = SignedDuration::try_from(age).map_err(|_| Fault::Invalid("the age is too great"))?;
        cut = before(now.min(recorded).checked_sub(age).unwrap_or(Timestamp::MIN))?;
    }
    cut = cut.max(events_beyond(connection, retention)?);
    let day = before(values::time(oldest.saturating_add(DAY))?)?;
    Ok(if day > 0 { cut.min(day) } else { cut })
}

/// The last of the Events that bytes do not keep.
fn events_beyond(connection: &Connection, retention: &Retention) -> Outcome<i64> {
    let used = "SELECT value FROM meta WHERE name = 'event_bytes'";
    let used: u64 = connection.query_row(used, [], |row| row.get::<_, i64>(0))?.unsigned_abs();
    let Some(most) = retention.event_bytes.filter(|most| used > *most) else { return Ok(0) };
    let mut left = used - (most - most / 16);
    let mut sizes = connection.prepare(
        "SELECT number, length(detail) + length(frame) + ?1 FROM versions WHERE verb > 4 ORDER BY number",
    )?;
    let (mut rows, mut cut) = (sizes.query([ROW])?, 0);
    while left > 0
        && let Some(row) = rows.next()?
    {
        cut = row.get(0)?;
        left = left.saturating_sub(row.get::<_, i64>(1)?.unsigned_abs());
    }
    Ok(cut)
}

/// Removes some Events as a whole: those of which nothing came after the cut. Returns whether there were any.
fn retain_events(
    writer: &mut BatchWriter,
    connection: &Connection,
    cut: i64,
    done: &mut Retained,
) -> Outcome<bool> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let sql = "SELECT DISTINCT v.object FROM versions v WHERE v.verb > 4 AND v.number <= ?1
               AND (SELECT max(number) FROM versions WHERE object = v.object) <= ?1 LIMIT ?2";
    let objects = ids(&transaction, sql, [cut, STEP])?;
    let mut newest = 0;
    for object in &objects {
        let versions = ids(&transaction, "SELECT number FROM versions WHERE object = ?1", [*object])?;
        for number in &versions {
            remove_version(writer, &transaction, *number)?;
            newest = newest.max(*number);
        }
        done.versions += versions.len() as u64;
        transaction.prepare_cached("DELETE FROM objects WHERE id = ?1")?.execute([object])?;
    }
    let sql = "UPDATE meta SET value = max(value, ?1) WHERE name = 'events_after'";
    transaction.prepare_cached(sql)?.execute([newest])?;
    transaction.commit()?;
    Ok(!objects.is_empty())
}

/// The last record that age and count do not keep.
fn cut(connection: &Connection, retention: &Retention, now: Timestamp) -> Outcome<i64> {
    let mut cut = 0;
    let last = read::last(connection)?;
    if let (Some(age), Some((last, recorded))) = (retention.age, last) {
        let age = SignedDuration::try_from(age).map_err(|_| Fault::Invalid("the age is too great"))?;
        let oldest = now.min(recorded).checked_sub(age).unwrap_or(Timestamp::MIN).as_microsecond();
        // All up to the first that is young enough.
        let young = "SELECT min(n) FROM (SELECT min(number) AS n FROM versions WHERE observed_at >= ?1 AND number > ?2
                     UNION ALL SELECT min(number) FROM gaps WHERE to_at >= ?1 AND number > ?2)";
        let bounds = params![oldest, complete_after(connection)?];
        let young: Option<i64> = connection.query_row(young, bounds, |row| row.get(0))?;
        cut = cut.max(young.map_or(values::id(last), |young| young - 1));
    }
    if let Some(count) = retention.count {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let sql = "SELECT number FROM (SELECT number FROM versions WHERE verb BETWEEN 1 AND 4 UNION ALL SELECT number FROM gaps)
                   ORDER BY number DESC LIMIT 1 OFFSET ?1";
        let beyond: Option<i64> = connection.query_row(sql, [count], |row| row.get(0)).optional()?;
        cut = cut.max(beyond.unwrap_or_default());
    }
    Ok(cut)
}

/// The last of the records after this one that follow each other within a day: up to the first that is a day away from the
/// oldest, before it or after it.
fn day_after(connection: &Connection, after: i64) -> Outcome<i64> {
    let oldest = "SELECT observed_at FROM versions WHERE number > ?1 ORDER BY number LIMIT 1";
    let oldest: Option<i64> = connection.query_row(oldest, [after], |row| row.get(0)).optional()?;
    let Some(oldest) = oldest else { return Ok(i64::MAX) };
    let first = "SELECT min(n) FROM (
                     SELECT min(number) AS n FROM versions WHERE observed_at >= ?2 + ?3 AND number > ?1
                     UNION ALL SELECT min(number) FROM versions WHERE observed_at <= ?2 - ?3 AND number > ?1)";
    let first: Option<i64> = connection.query_row(first, [after, oldest, DAY], |row| row.get(0))?;
    Ok(first.map_or(i64::MAX, |first| first - 1))
}

pub(super) fn complete_after(connection: &Connection) -> Outcome<i64> {
    let sql = "SELECT value FROM meta WHERE name = 'complete_after'";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

fn used_bytes(connection: &Connection) -> Outcome<u64> {
    let of = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    Ok((of("page_count")? - of("freelist_count")?) * of("page_size")?)
}

/// Takes the next step of a plan: one transaction, which leaves a history that is sound by itself.
pub(super) fn retain(writer: &mut BatchWriter, connection: &Connection, plan: &Plan) -> Outcome<Retained> {
    let before = complete_after(connection)?;
    let mut done = Retained { complete_after: Number(before.unsigned_abs()), ..Retained::default() };
    if plan.events_up_to > 0 && retain_events(writer, connection, plan.events_up_to, &mut done)? {
        done.more = true;
        return Ok(done);
    }
    let is_over = || plan.bytes.map_or(Ok(false), |bytes| Ok::<_, Fault>(used_bytes(connection)? > bytes));
    let goal = match before < plan.up_to {
        true => plan.up_to,
        false if is_over()? => plan.most.min(writer.last()),
        false => return Ok(done),
    };
    let goal = goal.min(for_sinks(writer, connection, plan, goal)?);
    if goal <= before {
        return Ok(done);
    }
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let next =
        "SELECT number FROM versions WHERE number > ?1 AND number <= ?2 ORDER BY number LIMIT 1 OFFSET ?3";
    let next: Option<i64> =
        transaction.query_row(next, [before, goal, STEP - 1], |row| row.get(0)).optional()?;
    let cut = next.unwrap_or(goal);
    // The letter says nothing without its record.
    transaction.execute("DELETE FROM dead_letters WHERE number <= ?1", [cut])?;
    done.lost = lose(&transaction, cut)?;
    transaction.execute("DELETE FROM scrubs WHERE number <= ?1", [cut])?;
    done.gaps = transaction.execute("DELETE FROM gaps WHERE number <= ?1", [cut])? as u64;
    let sql = "SELECT object FROM versions WHERE number > ?1 AND number <= ?2
               UNION SELECT id FROM objects WHERE ended > ?1 AND ended <= ?2";
    let objects = ids(&transaction, sql, [before, cut])?;
    remove(writer, &transaction, &objects, cut, &mut done)?;
    stories::forget(&transaction, cut)?;
    transaction.execute("UPDATE meta SET value = ?1 WHERE name = 'complete_after'", [cut])?;
    transaction.commit()?;
    (done.complete_after, done.more) = (Number(cut.unsigned_abs()), true);
    Ok(done)
}

fn ids(connection: &Connection, sql: &str, of: impl Params) -> Outcome<Vec<i64>> {
    let mut statement = connection.prepare_cached(sql)?;
    let ids = statement.query_map(of, |row| row.get(0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// How far the sinks let it be removed.
fn for_sinks(writer: &BatchWriter, connection: &Connection, plan: &Plan, cut: i64) -> Outcome<i64> {
    let slowest: Option<i64> =
        connection.query_row("SELECT min(position) FROM sinks", [], |row| row.get(0))?;
    let Some(slowest) = slowest.filter(|slowest| *slowest < cut) else { return Ok(cut) };
    let most = i64::try_from(plan.for_sinks).unwrap_or(i64::MAX);
    Ok(slowest.max(writer.last().saturating_sub(most)))
}

/// Moves the sinks that have not come to `cut` there, and says what they lose.
fn lose(connection: &Connection, cut: i64) -> Outcome<Vec<Lost>> {
    let mut behind =
        connection.prepare("SELECT name, position FROM sinks WHERE position < ?1 ORDER BY name")?;
    let behind = behind.query_map([cut], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
    let mut lost = Vec::new();
    for row in behind {
        let (sink, after) = row?;
        let count = "SELECT (SELECT count(*) FROM versions WHERE number > ?1 AND number <= ?2 AND verb BETWEEN 1 AND 4)
                     + (SELECT count(*) FROM gaps WHERE number > ?1 AND number <= ?2)";
        let records: i64 = connection.query_row(count, [after, cut], |row| row.get(0))?;
        let move_on = "UPDATE sinks SET position = ?2, lost = lost + ?3 WHERE name = ?1";
        connection.execute(move_on, params![sink, cut, records])?;
        let (after, up_to) = (Number(after.unsigned_abs()), Number(cut.unsigned_abs()));
        if records > 0 {
            lost.push(Lost { sink, after, up_to, records: records.unsigned_abs() });
        }
    }
    Ok(lost)
}

fn remove(
    writer: &mut BatchWriter,
    connection: &Connection,
    objects: &[i64],
    cut: i64,
    done: &mut Retained,
) -> Outcome<()> {
    for object in objects {
        let ended = "SELECT ended FROM objects WHERE id = ?1";
        let ended: Option<i64> = connection.prepare_cached(ended)?.query_row([object], |row| row.get(0))?;
        let old = "SELECT number FROM versions WHERE object = ?1 AND number <= ?2 ORDER BY number";
        let mut old = ids(connection, old, [*object, cut])?;
        let is_gone = ended.is_some_and(|ended| ended <= cut);
        // The last version of that time is the state in which everything after it begins.
        let first_kept = if is_gone { None } else { old.pop().filter(|_| !old.is_empty()) };
        if let Some(first) = first_kept {
            connection
                .prepare_cached("UPDATE objects SET first = ?2 WHERE id = ?1")?
                .execute([*object, first])?;
        }
        let rebase =
            first_kept.map(|first| Rebase::prepare(writer, connection, first)).transpose()?.flatten();
        // Removal comes first: it makes the room that the full version needs.
        for number in &old {
            remove_version(writer, connection, *number)?;
        }
        if let Some(rebase) = rebase {
            rebase.write(writer, connection)?;
            done.rebased += 1;
        }
        done.versions += old.len() as u64;
        if is_gone {
            connection.prepare_cached("DELETE FROM objects WHERE id = ?1")?.execute([object])?;
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
    fn prepare(writer: &mut BatchWriter, connection: &Connection, number: i64) -> Outcome<Option<Self>> {
        let sql = "SELECT base, kind FROM versions WHERE number = ?1";
        let (base, kind): (i64, i64) =
            connection.prepare_cached(sql)?.query_row([number], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if base == 0 {
            return Ok(None);
        }
        Ok(Some(Self { number, kind, body: writer.codec.body(connection, number)? }))
    }

    fn write(self, writer: &mut BatchWriter, connection: &Connection) -> Outcome<()> {
        let (shared, packed) = writer.full(connection, self.kind, &self.body)?;
        let sql = "UPDATE versions SET base = 0, content = ?2, split = ?3, dictionary = ?4, frame = ?5 WHERE number = ?1";
        let (content, split) = shared.unzip();
        let row = params![self.number, content, split, packed.dictionary, packed.frame];
        connection.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }
}

fn remove_version(writer: &mut BatchWriter, connection: &Connection, number: i64) -> Outcome<()> {
    let details = read::details(&mut writer.codec, connection, number)?;
    let details = detail::read(&details, number)?;
    for manager in details.managers.iter() {
        if let Some(id) = names::find(connection, Table::Managers, &manager.manager)? {
            let sql = "DELETE FROM version_managers WHERE manager = ?1 AND number = ?2";
            connection.prepare_cached(sql)?.execute([id, number])?;
        }
    }
    for path in details.paths.iter() {
        if let Some(id) = names::find(connection, Table::Paths, path)? {
            let sql = "DELETE FROM version_paths WHERE path = ?1 AND number = ?2";
            connection.prepare_cached(sql)?.execute([id, number])?;
        }
    }
    connection.prepare_cached("DELETE FROM members WHERE number = ?1")?.execute([number])?;
    let sql = "DELETE FROM versions WHERE number = ?1
               RETURNING content, iif(verb > 4, length(detail) + length(frame) + ?2, 0)";
    let (content, bytes): (Option<i64>, i64) = connection
        .prepare_cached(sql)?
        .query_row(params![number, ROW], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if bytes > 0 {
        let sql = "UPDATE meta SET value = max(value - ?1, 0) WHERE name = 'event_bytes'";
        connection.prepare_cached(sql)?.execute([bytes])?;
    }
    release(connection, content)
}

/// A version does not need this content any more.
pub(super) fn release(connection: &Connection, content: Option<i64>) -> Outcome<()> {
    if let Some(content) = content {
        let sql = "UPDATE contents SET uses = uses - 1 WHERE id = ?1";
        connection.prepare_cached(sql)?.execute([content])?;
        let sql = "DELETE FROM contents WHERE id = ?1 AND uses <= 0";
        connection.prepare_cached(sql)?.execute([content])?;
    }
    Ok(())
}
