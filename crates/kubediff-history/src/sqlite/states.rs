//! Versions of objects: one, all, or those of a moment.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::chosen::Chosen;
use super::codec::Codec;
use super::conditions::MOST;
use super::fault::Outcome;
use super::noise::noise;
use super::read::{HEAD, Lens, VersionRow};
use super::values::{id, number, time};
use crate::filter::{At, Scope};
use crate::record::{Incarnation, Number, Version};
use crate::report::{Instant, Present};

pub(super) fn incarnations(connection: &Connection, scope: &Scope) -> Outcome<Vec<Incarnation>> {
    let Some(chosen) = Chosen::find(connection, scope)? else { return Ok(Vec::new()) };
    let ids = match chosen.objects {
        Some(ids) => ids,
        None => chosen.objects(connection, scope, 0, MOST)?,
    };
    described(connection, ids)
}

/// The states of these objects in the history. The latest to change is last.
pub(super) fn described(connection: &Connection, ids: Vec<i64>) -> Outcome<Vec<Incarnation>> {
    let mut found = Vec::new();
    for id in ids {
        let sql = "SELECT min(number), max(number) FROM versions WHERE object = ?1";
        let (first, newest): (Option<i64>, Option<i64>) =
            connection.prepare_cached(sql)?.query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let sql = "SELECT ended_at FROM objects WHERE id = ?1";
        let ended: Option<i64> = connection.prepare_cached(sql)?.query_row([id], |row| row.get(0))?;
        if let (Some(first), Some(newest)) = (first, newest) {
            let object = head(connection, newest)?.object;
            let ended_at = ended.map(time).transpose()?;
            found.push(Incarnation { object, first: number(first), newest: number(newest), ended_at, id });
        }
    }
    found.sort_by_key(|incarnation| incarnation.newest);
    Ok(found)
}

pub(super) fn head(connection: &Connection, number: i64) -> Outcome<VersionRow> {
    let sql = format!("{HEAD} WHERE v.number = ?1");
    Ok(connection.prepare_cached(&sql)?.query_row([number], VersionRow::read)?)
}

/// The version with this number.
pub(super) fn numbered(
    connection: &Connection,
    codec: &mut Codec,
    lens: &Lens,
    number: Number,
) -> Outcome<Option<Version>> {
    let sql = format!("{HEAD} WHERE v.number = ?1");
    let Some(head) = connection.prepare_cached(&sql)?.query_row([id(number)], VersionRow::read).optional()?
    else {
        return Ok(None);
    };
    let body = codec.body(connection, head.number)?;
    Ok(Some(head.version(connection, codec, lens, body)?))
}

/// The version of the same object before this one.
pub(super) fn before(
    connection: &Connection,
    codec: &mut Codec,
    lens: &Lens,
    this: Number,
) -> Outcome<Option<Version>> {
    let sql = "SELECT max(number) FROM versions WHERE object = (SELECT object FROM versions WHERE number = ?1) AND number < ?1";
    let before: Option<i64> = connection.prepare_cached(sql)?.query_row([id(this)], |row| row.get(0))?;
    before.map_or(Ok(None), |before| numbered(connection, codec, lens, number(before)))
}

/// Visits the versions of an incarnation, the oldest first.
pub(super) fn versions(
    connection: &Connection,
    codec: &mut Codec,
    lens: &Lens,
    incarnation: &Incarnation,
    visit: &mut dyn FnMut(Version) -> ControlFlow<()>,
) -> Outcome<()> {
    let sql = format!("{HEAD} WHERE v.object = ?1 ORDER BY v.number");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([incarnation.id])?;
    let mut before: Option<(i64, Arc<[u8]>)> = None;
    while let Some(row) = rows.next()? {
        let head = VersionRow::read(row)?;
        let known = before.as_ref().map(|(number, body)| (*number, body));
        let body = codec.body_after(connection, head.number, known)?;
        before = Some((head.number, body.clone()));
        if visit(head.version(connection, codec, lens, body)?).is_break() {
            break;
        }
    }
    Ok(())
}

/// One version of an incarnation.
pub(super) fn version(
    connection: &Connection,
    codec: &mut Codec,
    lens: &Lens,
    incarnation: &Incarnation,
    at: &At,
) -> Outcome<Option<Version>> {
    let object = incarnation.id;
    let number: Option<i64> = match at {
        At::Newest => return newest(connection, codec, lens, object),
        At::Number(number) => {
            let sql = "SELECT number FROM versions WHERE object = ?1 AND number = ?2";
            connection.query_row(sql, params![object, id(*number)], |row| row.get(0)).optional()?
        }
        At::Before(number) => {
            let sql = "SELECT max(number) FROM versions WHERE object = ?1 AND number < ?2";
            connection.query_row(sql, params![object, id(*number)], |row| row.get(0))?
        }
        At::Rv(rv) => {
            let sql = "SELECT max(number) FROM versions WHERE object = ?1 AND rv = ?2";
            connection.query_row(sql, params![object, rv], |row| row.get(0))?
        }
        At::Time(time) => {
            let Some(instant) = Instant::at(connection, *time)? else { return Ok(None) };
            if is_newest_at(connection, object, instant.time)? {
                return newest(connection, codec, lens, object);
            }
            number_at(connection, object, instant)?
        }
    };
    let Some(number) = number else { return Ok(None) };
    let body = codec.body(connection, number)?;
    Ok(Some(head(connection, number)?.version(connection, codec, lens, body)?))
}

fn number_at(connection: &Connection, object: i64, instant: Instant) -> Outcome<Option<i64>> {
    let sql = "SELECT max(number) FROM versions WHERE object = ?1 AND number <= ?2";
    Ok(connection.prepare_cached(sql)?.query_row([object, instant.last], |row| row.get(0))?)
}

/// Whether the current state, which noise has led to, is of this time or earlier.
fn is_newest_at(connection: &Connection, object: i64, time: i64) -> Outcome<bool> {
    let sql = "SELECT state_at <= ?2 FROM objects WHERE id = ?1 AND state_at IS NOT NULL";
    let newest = connection.prepare_cached(sql)?.query_row([object, time], |row| row.get(0));
    Ok(newest.optional()?.unwrap_or(false))
}

/// The current state, which noise may have changed since the newest version.
fn newest(connection: &Connection, codec: &mut Codec, lens: &Lens, object: i64) -> Outcome<Option<Version>> {
    let sql = "SELECT max(number) FROM versions WHERE object = ?1";
    let newest: Option<i64> = connection.prepare_cached(sql)?.query_row([object], |row| row.get(0))?;
    let Some(newest) = newest else { return Ok(None) };
    let mut body = codec.body(connection, newest)?;
    let noise = noise(connection, codec, object, &body)?;
    let noise = noise.map(|(rv, at, noise)| {
        body = noise.into();
        (rv, at)
    });
    let mut version = head(connection, newest)?.version(connection, codec, lens, body)?;
    if let Some((rv, at)) = noise {
        version.rv = rv;
        version.observed_at = time(at)?;
    }
    Ok(Some(version))
}

/// The objects that were there at a time, or are there now.
pub(super) fn present(connection: &Connection, scope: &Scope, at: Option<Timestamp>) -> Outcome<Present> {
    let mut present = Present { at: None, ids: Vec::new() };
    let Some(chosen) = Chosen::find(connection, scope)? else { return Ok(present) };
    if let Some(time) = at {
        present.at = Instant::at(connection, time)?;
        if present.at.is_none() {
            return Ok(present);
        }
    }
    present.ids = chosen.present(connection, present.at.map(|at| at.last))?;
    Ok(present)
}

/// The states of some of these objects.
pub(super) fn of(
    connection: &Connection,
    codec: &mut Codec,
    lens: &Lens,
    present: &Present,
    some: Range<usize>,
) -> Outcome<Vec<Version>> {
    let ids = present.ids.get(some).unwrap_or_default();
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        found.extend(object_at(connection, codec, lens, *id, present.at)?);
    }
    Ok(found)
}

fn object_at(
    connection: &Connection,
    codec: &mut Codec,
    lens: &Lens,
    object: i64,
    at: Option<Instant>,
) -> Outcome<Option<Version>> {
    let sql = "SELECT ended FROM objects WHERE id = ?1";
    let ended = connection.prepare_cached(sql)?.query_row([object], |row| row.get::<_, Option<i64>>(0));
    let Some(ended) = ended.optional()? else { return Ok(None) };
    let Some(at) = at else {
        return if ended.is_some() { Ok(None) } else { newest(connection, codec, lens, object) };
    };
    if ended.is_some_and(|ended| ended <= at.last) {
        return Ok(None);
    }
    if is_newest_at(connection, object, at.time)? {
        return newest(connection, codec, lens, object);
    }
    let Some(number) = number_at(connection, object, at)? else { return Ok(None) };
    let head = head(connection, number)?;
    if head.is_deletion() {
        return Ok(None);
    }
    let body = codec.body(connection, number)?;
    Ok(Some(head.version(connection, codec, lens, body)?))
}
