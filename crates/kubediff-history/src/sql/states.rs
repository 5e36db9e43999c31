//! Versions of objects: one, all, or those of a moment. Each question takes a few queries, however many objects it is about.

use std::collections::{BTreeMap, HashMap};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use jiff::Timestamp;

use super::chosen::Chosen;
use super::codec::{Codec, Stored};
use super::conditions::{MOST, in_list};
use super::db::{Db, values};
use super::fault::Outcome;
use super::noise::noise;
use super::read::{HEAD, Lens, VersionRow};
use super::values::{id, number, time};
use crate::filter::{At, Scope};
use crate::record::{Incarnation, Number, Version};
use crate::report::{Instant, Keys, Moment, Present};

/// Versions of an object that are read at once.
const CHUNK: usize = 256;

pub(crate) fn incarnations(db: Db<'_>, scope: &Scope) -> Outcome<Vec<Incarnation>> {
    let Some(chosen) = Chosen::find(db, scope)? else { return Ok(Vec::new()) };
    let ids = match chosen.objects {
        Some(ids) => ids,
        None => chosen.objects(db, scope, 0, MOST)?,
    };
    described(db, &ids)
}

/// The states of these objects in the history. The latest to change is last.
pub(crate) fn described(db: Db<'_>, ids: &[i64]) -> Outcome<Vec<Incarnation>> {
    let sql = format!(
        "SELECT o.id, o.ended_at, (SELECT min(number) FROM versions WHERE object = o.id),
         (SELECT max(number) FROM versions WHERE object = o.id) FROM objects o WHERE o.id{}",
        in_list(ids)
    );
    let rows = db.all(&sql, &[], |row| {
        Ok((row.get(0)?, row.get::<Option<i64>>(1)?, row.get::<Option<i64>>(2)?, row.get::<Option<i64>>(3)?))
    })?;
    let newest: Vec<i64> = rows.iter().filter_map(|(.., newest)| *newest).collect();
    let mut heads = heads(db, &newest)?;
    let mut found = Vec::new();
    for (id, ended, first, newest) in rows {
        let (Some(first), Some(newest)) = (first, newest) else { continue };
        let Some(head) = heads.remove(&newest) else { continue };
        let ended_at = ended.map(time).transpose()?;
        let (first, newest) = (number(first), number(newest));
        found.push(Incarnation { object: head.object, first, newest, ended_at, id });
    }
    found.sort_by_key(|incarnation| incarnation.newest);
    Ok(found)
}

/// The rows of these versions.
pub(crate) fn heads(db: Db<'_>, numbers: &[i64]) -> Outcome<HashMap<i64, VersionRow>> {
    let sql = format!("{HEAD} WHERE v.number{}", in_list(numbers));
    let rows = db.all(&sql, &[], VersionRow::read)?;
    Ok(rows.into_iter().map(|row| (row.number, row)).collect())
}

pub(crate) fn head(db: Db<'_>, number: i64) -> Outcome<Option<VersionRow>> {
    let sql = format!("{HEAD} WHERE v.number = ?1");
    db.first(&sql, values![number], VersionRow::read)
}

/// The version with this number.
pub(crate) fn numbered(
    db: Db<'_>,
    codec: &mut Codec,
    lens: &Lens,
    number: Number,
) -> Outcome<Option<Version>> {
    let Some(head) = head(db, id(number))? else { return Ok(None) };
    let body = codec.body(db, head.number)?;
    Ok(Some(head.version(db, codec, lens, body)?))
}

/// The version of the same object before this one.
pub(crate) fn before(db: Db<'_>, codec: &mut Codec, lens: &Lens, this: Number) -> Outcome<Option<Version>> {
    let sql = "SELECT max(number) FROM versions WHERE object = (SELECT object FROM versions WHERE number = ?1) AND number < ?1";
    let before: Option<i64> = db.one(sql, values![id(this)])?;
    before.map_or(Ok(None), |before| numbered(db, codec, lens, number(before)))
}

/// Visits the versions of an incarnation, the oldest first.
pub(crate) fn versions(
    db: Db<'_>,
    codec: &mut Codec,
    lens: &Lens,
    incarnation: &Incarnation,
    visit: &mut dyn FnMut(Version) -> ControlFlow<()>,
) -> Outcome<()> {
    let sql = format!("{HEAD} WHERE v.object = ?1 AND v.number > ?2 ORDER BY v.number LIMIT {CHUNK}");
    let mut before: Option<(i64, Arc<[u8]>)> = None;
    loop {
        let after = before.as_ref().map_or(0, |(number, _)| *number);
        let heads = db.all(&sql, values![incarnation.id, after], VersionRow::read)?;
        let numbers: Vec<i64> = heads.iter().map(|head| head.number).collect();
        if numbers.is_empty() {
            return Ok(());
        }
        let chains = Stored::chains(db, &numbers, Some(after))?;
        for head in heads {
            let known = before.as_ref().map(|(number, body)| (*number, body));
            let body = codec.unpacked(db, head.number, &chains, known)?;
            before = Some((head.number, body.clone()));
            if visit(head.version(db, codec, lens, body)?).is_break() {
                return Ok(());
            }
        }
    }
}

/// One version of an incarnation.
pub(crate) fn version(
    db: Db<'_>,
    codec: &mut Codec,
    lens: &Lens,
    incarnation: &Incarnation,
    at: &At,
) -> Outcome<Option<Version>> {
    let object = incarnation.id;
    let number: Option<i64> = match at {
        At::Newest => return Ok(of_objects(db, codec, lens, &[object], Wanted::Newest, true)?.pop()),
        At::Number(number) => {
            let sql = "SELECT number FROM versions WHERE object = ?1 AND number = ?2";
            db.first(sql, values![object, id(*number)], |row| row.get(0))?
        }
        At::Before(number) => {
            let sql = "SELECT max(number) FROM versions WHERE object = ?1 AND number < ?2";
            db.one(sql, values![object, id(*number)])?
        }
        At::Rv(rv) => {
            let sql = "SELECT max(number) FROM versions WHERE object = ?1 AND rv = ?2";
            db.one(sql, values![object, rv])?
        }
        At::Time(time) => {
            let Some(instant) = Instant::at(db, *time)? else { return Ok(None) };
            return Ok(of_objects(db, codec, lens, &[object], Wanted::At(instant), true)?.pop());
        }
    };
    let Some(number) = number else { return Ok(None) };
    numbered(db, codec, lens, self::number(number))
}

/// The objects that were there at a time, or are there now.
pub(crate) fn present(db: Db<'_>, scope: &Scope, at: Option<Timestamp>) -> Outcome<Present> {
    let mut present = Present { at: None, ids: Vec::new() };
    let Some(chosen) = Chosen::find(db, scope)? else { return Ok(present) };
    if let Some(time) = at {
        present.at = Instant::at(db, time)?;
        if present.at.is_none() {
            return Ok(present);
        }
    }
    present.ids = chosen.present(db, present.at.map(|at| at.last))?;
    Ok(present)
}

/// The objects of a scope at a moment, by the text `namespace/name`.
pub(crate) fn keys(db: Db<'_>, scope: &Scope, at: Moment) -> Outcome<Keys> {
    let at = Instant { last: id(at.number), time: at.time.as_microsecond() };
    let found = match Chosen::find(db, scope)? {
        Some(chosen) => chosen.keys(db, at.last)?,
        None => Vec::new(),
    };
    Ok(Keys::new(at, found))
}

/// The states of some of these objects, with the changes that led to them if these are wanted.
pub(crate) fn of(
    db: Db<'_>,
    codec: &mut Codec,
    lens: &Lens,
    present: &Present,
    some: Range<usize>,
    changes: bool,
) -> Outcome<Vec<Version>> {
    let ids = present.ids.get(some).unwrap_or_default();
    of_objects(db, codec, lens, ids, present.at.map_or(Wanted::Existing, Wanted::Existed), changes)
}

/// Which version of an object.
#[derive(Clone, Copy)]
enum Wanted {
    /// The newest one.
    Newest,
    /// The one of a moment.
    At(Instant),
    /// The newest one, if the object exists.
    Existing,
    /// The one of a moment, if the object existed then.
    Existed(Instant),
}

impl Wanted {
    fn instant(self) -> Option<Instant> {
        match self {
            Self::Newest | Self::Existing => None,
            Self::At(instant) | Self::Existed(instant) => Some(instant),
        }
    }
}

/// One version of each of these objects that has it, in their order.
fn of_objects(
    db: Db<'_>,
    codec: &mut Codec,
    lens: &Lens,
    ids: &[i64],
    wanted: Wanted,
    changes: bool,
) -> Outcome<Vec<Version>> {
    let instant = wanted.instant();
    let last = instant.map_or(i64::MAX, |instant| instant.last);
    let sql = format!(
        "SELECT o.id, o.ended, o.state_at, (SELECT max(number) FROM versions WHERE object = o.id),
         (SELECT max(number) FROM versions WHERE object = o.id AND number <= ?1) FROM objects o WHERE o.id{}",
        in_list(ids)
    );
    let mut numbers: BTreeMap<i64, (i64, bool)> = BTreeMap::new();
    db.each(&sql, values![last], |row| {
        let (ended, state_at): (Option<i64>, Option<i64>) = (row.get(1)?, row.get(2)?);
        let is_gone = match wanted {
            Wanted::Newest | Wanted::At(_) => false,
            Wanted::Existing => ended.is_some(),
            Wanted::Existed(at) => ended.is_some_and(|ended| ended <= at.last),
        };
        // The current state, which noise has led to, may be of the moment, too.
        let is_newest = instant.is_none_or(|at| state_at.is_some_and(|state| state <= at.time));
        let number: Option<i64> = row.get(if is_newest { 3 } else { 4 })?;
        if let Some(number) = number.filter(|_| !is_gone) {
            numbers.insert(row.get(0)?, (number, is_newest && state_at.is_some()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let all: Vec<i64> = numbers.values().map(|(number, _)| *number).collect();
    let (mut heads, mut bodies) = (heads(db, &all)?, codec.bodies(db, &all)?);
    let mut found = Vec::with_capacity(ids.len());
    for object in ids {
        let Some((number, has_noise)) = numbers.get(object) else { continue };
        let (Some(head), Some((mut body, _))) = (heads.remove(number), bodies.remove(number)) else {
            continue;
        };
        if matches!(wanted, Wanted::Existed(_)) && head.is_deletion() {
            continue;
        }
        let noise = if *has_noise { noise(db, codec, *object, &body)? } else { None };
        let noise = noise.map(|(rv, at, noise)| {
            body = noise.into();
            (rv, at)
        });
        let mut version =
            if changes { head.version(db, codec, lens, body)? } else { head.state(lens, body)? };
        if let Some((rv, at)) = noise {
            version.rv = rv;
            version.observed_at = time(at)?;
        }
        found.push(version);
    }
    Ok(found)
}
