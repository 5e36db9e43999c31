//! Removes old versions and records.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::detail;
use super::fault::{Fault, Outcome};
use super::names::{self, Table};
use super::write::Memory;
use crate::record::Number;
use crate::report::{Lost, Retained, Retention};
use jiff::{SignedDuration, Timestamp};

/// Objects per transaction: others may write in between.
const OBJECTS: usize = 500;
/// A limit in bytes is approached by this share of the records at a time.
const SLICES: i64 = 20;

/// Removes what `retention` does not keep. Each of its transactions leaves a history that is sound by itself.
pub(super) fn retain(
    memory: &mut Memory,
    connection: &Connection,
    retention: &Retention,
    now: Timestamp,
) -> Outcome<Retained> {
    let mut done = Retained::default();
    let mut cut = cut(memory, connection, retention, now)?;
    remove_up_to(memory, connection, retention, cut, &mut done)?;
    if let Some(bytes) = retention.bytes {
        cut = cut.max(complete_after(connection)?);
        while used_bytes(connection)? > bytes && cut < memory.last() {
            let slice = ((memory.last() - cut) / SLICES).max(1);
            let before = complete_after(connection)?;
            cut = memory.last().min(cut + slice);
            remove_up_to(memory, connection, retention, cut, &mut done)?;
            if complete_after(connection)? == before {
                break;
            }
        }
    }
    done.complete_after = Number(complete_after(connection)?.unsigned_abs());
    Ok(done)
}

/// The last record that age and count do not keep.
fn cut(memory: &Memory, connection: &Connection, retention: &Retention, now: Timestamp) -> Outcome<i64> {
    let mut cut = 0;
    if let Some(age) = retention.age {
        let age = SignedDuration::try_from(age).map_err(|_| Fault::Invalid("the age is too great"))?;
        let oldest = now.checked_sub(age).unwrap_or(Timestamp::MIN).as_microsecond();
        // All up to the first that is young enough.
        let young = "SELECT min(n) FROM (SELECT min(number) AS n FROM versions WHERE observed_at >= ?1 AND number > ?2
                     UNION ALL SELECT min(number) FROM gaps WHERE to_at >= ?1 AND number > ?2)";
        let bounds = params![oldest, complete_after(connection)?];
        let young: Option<i64> = connection.query_row(young, bounds, |row| row.get(0))?;
        cut = cut.max(young.map_or(memory.last(), |young| young - 1));
    }
    if let Some(count) = retention.count {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let sql = "SELECT number FROM (SELECT number FROM versions WHERE verb > 0 UNION ALL SELECT number FROM gaps)
                   ORDER BY number DESC LIMIT 1 OFFSET ?1";
        let beyond: Option<i64> = connection.query_row(sql, [count], |row| row.get(0)).optional()?;
        cut = cut.max(beyond.unwrap_or_default());
    }
    Ok(cut)
}

pub(super) fn complete_after(connection: &Connection) -> Outcome<i64> {
    let sql = "SELECT value FROM meta WHERE name = 'complete_after'";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

fn used_bytes(connection: &Connection) -> Outcome<u64> {
    let of = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    Ok((of("page_count")? - of("freelist_count")?) * of("page_size")?)
}

fn remove_up_to(
    memory: &mut Memory,
    connection: &Connection,
    retention: &Retention,
    cut: i64,
    done: &mut Retained,
) -> Outcome<()> {
    let cut = cut.min(for_sinks(memory, connection, retention, cut)?);
    let before = complete_after(connection)?;
    if cut <= before {
        return Ok(());
    }
    let first = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // The letter says nothing without its record.
    first.execute("DELETE FROM dead_letters WHERE number <= ?1", [cut])?;
    let lost = lose(&first, cut)?;
    let gaps = first.execute("DELETE FROM gaps WHERE number <= ?1", [cut])?;
    first.execute("UPDATE meta SET value = ?1 WHERE name = 'complete_after'", [cut])?;
    let sql = "SELECT object FROM versions WHERE number > ?1 AND number <= ?2
               UNION SELECT id FROM objects WHERE ended > ?1 AND ended <= ?2";
    let objects = ids(&first, sql, [before, cut])?;
    let mut objects = objects.chunks(OBJECTS);
    remove(memory, &first, objects.next().unwrap_or_default(), cut, done)?;
    first.commit()?;
    done.gaps += gaps as u64;
    done.lost.extend(lost);
    for some in objects {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        remove(memory, &transaction, some, cut, done)?;
        transaction.commit()?;
    }
    Ok(())
}

fn ids(connection: &Connection, sql: &str, of: [i64; 2]) -> Outcome<Vec<i64>> {
    let mut statement = connection.prepare_cached(sql)?;
    let ids = statement.query_map(of, |row| row.get(0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// How far the sinks let it be removed.
fn for_sinks(memory: &Memory, connection: &Connection, retention: &Retention, cut: i64) -> Outcome<i64> {
    let slowest: Option<i64> =
        connection.query_row("SELECT min(position) FROM sinks", [], |row| row.get(0))?;
    let Some(slowest) = slowest.filter(|slowest| *slowest < cut) else { return Ok(cut) };
    let most = i64::try_from(retention.for_sinks).unwrap_or(i64::MAX);
    Ok(slowest.max(memory.last().saturating_sub(most)))
}

/// Moves the sinks that have not come to `cut` there, and says what they lose.
fn lose(connection: &Connection, cut: i64) -> Outcome<Vec<Lost>> {
    let mut behind =
        connection.prepare("SELECT name, position FROM sinks WHERE position < ?1 ORDER BY name")?;
    let behind = behind.query_map([cut], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
    let mut lost = Vec::new();
    for row in behind {
        let (sink, after) = row?;
        let count = "SELECT (SELECT count(*) FROM versions WHERE number > ?1 AND number <= ?2 AND verb > 0)
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
    memory: &mut Memory,
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
        let rebase =
            first_kept.map(|first| Rebase::prepare(memory, connection, first)).transpose()?.flatten();
        // Removal comes first: it makes the room that the full version needs.
        for number in &old {
            remove_version(memory, connection, *number)?;
        }
        if let Some(rebase) = rebase {
            rebase.write(memory, connection)?;
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
    fn prepare(memory: &mut Memory, connection: &Connection, number: i64) -> Outcome<Option<Self>> {
        let sql = "SELECT base, kind FROM versions WHERE number = ?1";
        let (base, kind): (i64, i64) =
            connection.prepare_cached(sql)?.query_row([number], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if base == 0 {
            return Ok(None);
        }
        Ok(Some(Self { number, kind, body: memory.codec.body(connection, number)? }))
    }

    fn write(self, memory: &mut Memory, connection: &Connection) -> Outcome<()> {
        let (shared, packed) = memory.full(connection, self.kind, &self.body)?;
        let sql = "UPDATE versions SET base = 0, content = ?2, split = ?3, dictionary = ?4, frame = ?5 WHERE number = ?1";
        let (content, split) = shared.unzip();
        let row = params![self.number, content, split, packed.dictionary, packed.frame];
        connection.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }
}

fn remove_version(memory: &mut Memory, connection: &Connection, number: i64) -> Outcome<()> {
    let details = super::read::details(&mut memory.codec, connection, number)?;
    let details = detail::read(&details, number)?;
    for manager in &details.managers {
        if let Some(id) = names::find(connection, Table::Managers, &manager.manager)? {
            let sql = "DELETE FROM version_managers WHERE manager = ?1 AND number = ?2";
            connection.prepare_cached(sql)?.execute([id, number])?;
        }
    }
    for path in &details.paths {
        if let Some(id) = names::find(connection, Table::Paths, path)? {
            let sql = "DELETE FROM version_paths WHERE path = ?1 AND number = ?2";
            connection.prepare_cached(sql)?.execute([id, number])?;
        }
    }
    let sql = "DELETE FROM versions WHERE number = ?1 RETURNING content";
    let content: Option<i64> = connection.prepare_cached(sql)?.query_row([number], |row| row.get(0))?;
    if let Some(content) = content {
        let sql = "UPDATE contents SET uses = uses - 1 WHERE id = ?1";
        connection.prepare_cached(sql)?.execute([content])?;
        let sql = "DELETE FROM contents WHERE id = ?1 AND uses <= 0";
        connection.prepare_cached(sql)?.execute([content])?;
    }
    Ok(())
}
