//! In a database, versions go with their days. What is removed is left to them, in a few statements for many objects: each of them waits for
//! the network.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use super::{forget_bytes, ids};
use crate::report::Retained;
use crate::sql::conditions::in_list;
use crate::sql::db::{Db, Value, values};
use crate::sql::fault::Outcome;
use crate::sql::packing::{Packing, ROW};

/// A version that is old.
struct Old {
    number: i64,
    day: i64,
    kind: i64,
    is_event: bool,
    bytes: i64,
    crc: u32,
}

/// Removes the versions of these objects after a number up to another one, but for the last one of each that exists then.
pub(super) fn remove(
    packing: &mut Packing,
    db: Db<'_>,
    objects: &[i64],
    (before, cut): (i64, i64),
    known: &HashMap<i64, Arc<[u8]>>,
    done: &mut Retained,
) -> Outcome<()> {
    let list = in_list(objects);
    let gone = ids(db, &format!("SELECT id FROM objects WHERE id{list} AND ended <= ?1"), values![cut])?;
    let is_gone: BTreeSet<i64> = gone.iter().copied().collect();
    // Rows that show nothing any more may be many times as many.
    let row = "SELECT object, number, (day - '1970-01-01'::date)::bigint, kind, verb, length(detail) + length(frame), crc FROM versions WHERE";
    let sql = format!(
        "{row} object{list} AND day = '1970-01-01' UNION ALL {row} number > ?1 AND number <= ?2 ORDER BY number"
    );
    // The last version of that time is the state in which everything after it begins.
    let (mut first_kept, mut old) = (BTreeMap::<i64, Old>::new(), Vec::new());
    db.each(&sql, values![before, cut], |row| {
        let object = row.get(0)?;
        let (is_event, bytes) = (row.get::<i64>(4)? > 4, row.get(5)?);
        let (number, crc) = (row.get(1)?, row.count(6)?);
        let found = Old { number, day: row.get(2)?, kind: row.get(3)?, is_event, bytes, crc };
        if is_gone.contains(&object) {
            old.push(found);
        } else {
            old.extend(first_kept.insert(object, found));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let integers = |numbers: Vec<i64>| Value::Integers(numbers.into_iter().map(Some).collect());
    let first = "UPDATE objects SET first = kept.first FROM unnest(?1, ?2) AS kept (id, first) WHERE objects.id = kept.id";
    let firsts = first_kept.values().map(|it| it.number).collect();
    db.run(first, &[integers(first_kept.keys().copied().collect()), integers(firsts)])?;
    // A version that outlives its day already is a full one.
    first_kept.retain(|_, it| it.day != 0);
    // A scrub may have changed a content since it was read.
    let is_known = |it: &&Old| known.get(&it.number).is_some_and(|body| crc32fast::hash(body) == it.crc);
    let unknown: Vec<i64> = first_kept.values().filter(|it| !is_known(it)).map(|it| it.number).collect();
    let read = packing.codec.bodies(db, &unknown)?;

    done.versions += old.len() as u64;
    let bytes = |of: &dyn Fn(&&Old) -> bool| old.iter().filter(of).map(|it| it.bytes + ROW as i64).sum();
    forget_bytes(db, "bytes", bytes(&|_| true))?;
    forget_bytes(db, "event_bytes", bytes(&|it| it.is_event))?;
    let kept: Vec<i64> = old.iter().filter(|it| it.day == 0).map(|it| it.number).collect();
    db.run(&format!("DELETE FROM versions WHERE number{} AND day = '1970-01-01'", in_list(&kept)), &[])?;
    db.run(&format!("DELETE FROM objects WHERE id{}", in_list(&gone)), &[])?;

    let (mut numbers, mut dictionaries, mut frames) = (Vec::new(), Vec::new(), Vec::new());
    for Old { number, kind, .. } in first_kept.into_values() {
        let Some(body) = read.get(&number).map(|(body, _)| body).or_else(|| known.get(&number)) else {
            continue;
        };
        let (_, packed) = packing.full(db, kind, body)?;
        numbers.push(number);
        dictionaries.push(packed.dictionary);
        frames.push(Some(packed.frame));
    }
    done.rebased += numbers.len() as u64;
    // Its row stays until its day is dropped, and shows nothing any more.
    let outlives = "INSERT INTO versions (day, number, object, kind, namespace, verb, source, observed_at, rv, rv_before, base, length, crc,
                        dictionary, detail_length, detail_dictionary, tags, detail, frame)
                    SELECT '1970-01-01', v.number, object, kind, namespace, verb, source, observed_at, rv, rv_before, 0, length, crc, kept.dictionary,
                        detail_length, detail_dictionary, tags, detail, kept.frame
                    FROM unnest(?1, ?2, ?3) AS kept (number, dictionary, frame) JOIN versions v ON v.number = kept.number";
    db.run(outlives, &[integers(numbers), integers(dictionaries), Value::Blobs(frames)]).map(drop)
}

/// Removes all versions of Events. Returns the last one.
pub(super) fn remove_events(db: Db<'_>, events: &[i64], done: &mut Retained) -> Outcome<i64> {
    let list = in_list(events);
    let of = format!("number IN (SELECT number FROM versions WHERE object{list})");
    db.run(&format!("DELETE FROM members WHERE {of}"), &[])?;
    let gone = format!(
        "DELETE FROM versions WHERE object{list} RETURNING number, length(detail) + length(frame) + {ROW}"
    );
    let (mut newest, mut bytes) = (0, 0);
    db.each(&gone, &[], |row| {
        newest = row.get::<i64>(0)?.max(newest);
        bytes += row.get::<i64>(1)?;
        done.versions += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    for name in ["bytes", "event_bytes"] {
        forget_bytes(db, name, bytes)?;
    }
    db.run(&format!("DELETE FROM objects WHERE id{list}"), &[])?;
    Ok(newest)
}
